// Cargo wants a target in every package; nothing is built here.
