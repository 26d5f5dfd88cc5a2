//! Behaviour tests: a file per subject, a test per rule, named like the rule. Each test runs inside the backend in
//! a transaction of its own that is rolled back.

mod support;

mod create_flow;
