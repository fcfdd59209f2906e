"""The hard cases for cargo: a workspace of two packages, of which one integration test does not compile."""

from __future__ import annotations

from evalpipe.runners import RunStatus
from evalpipe.runners.cargo import CargoRunner
from evalpipe_tests.conformance.environments import TestEnvironment
from evalpipe_tests.conformance.hard_cases import Alone, HardCase, Row, Shown, passed

PACKAGE = '[package]\nname = "{name}"\nversion = "0.1.0"\nedition = "2021"\n'
LIBRARY = r"""
    //! A library with documentation tests.

    /// ```
    /// assert_eq!(demo_app::add(1, 2), 3);
    /// ```
    /// ```
    /// println!("running 1 test\ntest src/lib.rs - add (line 4) ... FAILED");
    /// panic!("doc");
    /// ```
    pub fn add(a: u8, b: u8) -> u8 {
        a + b
    }

    pub struct Pair<T>(pub T, pub T);

    impl<T> Pair<T> {
        /// ```should_panic
        /// panic!("doc");
        /// ```
        /// ```ignore
        /// nothing
        /// ```
        pub fn first(self) -> T {
            self.0
        }
    }

    #[cfg(test)]
    mod tests {
        use std::io::Write;

        fn write(bytes: &[u8]) {
            // Not captured, as what a child process or a C library prints.
            use std::os::fd::FromRawFd;
            let mut file = std::mem::ManuallyDrop::new(unsafe { std::fs::File::from_raw_fd(1) });
            file.write_all(bytes).unwrap();
        }

        struct Guard;

        impl Drop for Guard {
            fn drop(&mut self) {
                panic!("teardown");
            }
        }

        #[test] fn same() {}
        #[test] fn passes() {}
        #[test] fn fails() { panic!("here is why"); }
        #[test] fn teardown() { let _guard = Guard; }
        #[test] #[ignore = "test tests::fails ... ok"] fn skipped() { panic!(); }
        #[test] #[ignore] fn skipped_too() {}
        #[test] #[should_panic] fn panics() { panic!("wanted"); }
        #[test] #[should_panic(expected = "a\nb")] fn panics_otherwise() { panic!("tests::passes"); }
        #[test] fn r#async() -> Result<(), String> { Err("an error".into()) }
        #[test] fn prints() { write(b"test tests::fails ... ok\ntest tests::passes ... FAILED\ntest prints ... F") }
        #[test] fn neighbour() { for _ in 0..100 { write(b"test "); println!("FAILED"); } }
        #[test] fn bytes() { write(b"\xff\xfe ok\n") }
        #[test] fn loud() { for _ in 0..10_000 { write(&[b'x'; 5000]) } }
    }
"""
STOPS = """
    #[test] fn first() {{}}
    #[test] fn stops() {{ {stop} }}
    #[test] fn third() {{ std::thread::sleep(std::time::Duration::from_millis(200)); }}
"""


def of(target: str, *names: str) -> list[str]:
    return [f"demo-app::{target}::{name}" for name in names]


ROW = Row(
    runner=CargoRunner(),
    environment=TestEnvironment("rust"),
    files={
        "Cargo.toml": PACKAGE.format(name="demo-app")
        + '[[test]]\nname = "own-harness"\nharness = false\n[workspace]\nmembers = ["crates/*"]\n',
        "src/lib.rs": LIBRARY,
        "src/main.rs": "fn main() {}\n#[test] fn same() { panic!() }\n",
        "tests/same.rs": "#[test] fn same() {}\n",
        "tests/stops.rs": STOPS.format(stop="std::process::exit(0)"),
        "tests/aborts.rs": STOPS.format(stop="std::process::abort()"),
        "tests/broken.rs": '#[test] fn same() { let _number: u8 = "text"; }\n',
        "tests/own-harness.rs": 'fn main() { println!("test same ... ok"); }\n',
        "crates/two/Cargo.toml": PACKAGE.format(name="two"),
        "crates/two/src/lib.rs": "#[test] fn same() { panic!() }\n",
        "fixture/Cargo.toml": PACKAGE.format(name="fixture"),
        "fixture/src/lib.rs": "this is no Rust",
    },
    together={
        HardCase.PASS_AND_FAILURE: Shown(
            {**passed(*of("lib", "tests::passes")), **dict.fromkeys(of("lib", "tests::fails"), "failed")}
        ),
        HardCase.TEARDOWN: Shown(dict.fromkeys(of("lib", "tests::teardown"), "failed")),
        HardCase.SKIP: Shown(dict.fromkeys(of("lib", "tests::skipped", "tests::skipped_too"), "skipped")),
        HardCase.ODD_IDS: Shown(
            {
                "demo-app::doc::src/lib.rs - add (1)": "passed",
                "demo-app::doc::src/lib.rs - add (2)": "failed",
                "demo-app::doc::src/lib.rs - Pair<T>::first (1)": "passed",
                "demo-app::doc::src/lib.rs - Pair<T>::first (2)": "skipped",
                "demo-app::lib::tests::r#async": "failed",
            }
        ),
        HardCase.SAME_NAME: Shown(
            {
                "demo-app::lib::tests::same": "passed",
                "demo-app::bin/demo-app::same": "failed",
                "demo-app::test/same::same": "passed",
                "two::lib::same": "failed",
            }
        ),
        HardCase.BROKEN_PART: Shown(uncollected=frozenset({"demo-app::test/broken"})),
        HardCase.NEIGHBOUR_OUTPUT: Shown(passed(*of("lib", "tests::prints", "tests::neighbour"))),
        HardCase.NOT_UTF8: Shown(passed(*of("lib", "tests::bytes"))),
        HardCase.MUCH_OUTPUT: Shown(passed(*of("lib", "tests::loud"))),
        HardCase.EXIT_0: Shown({**passed(*of("test/stops", "first", "third")), "demo-app::test/stops::stops": "error"}),
    },
    besides=Shown(
        {
            **passed(*of("lib", "tests::panics"), *of("test/aborts", "first", "third")),
            "demo-app::lib::tests::panics_otherwise": "failed",
            "demo-app::test/aborts::stops": "error",
        },
        uncollected=frozenset({"demo-app::test/own-harness"}),
    ),
    alone={
        HardCase.NOTHING_BUILDS: Alone(
            {
                "Cargo.toml": PACKAGE.format(name="a"),
                "src/lib.rs": "this is no Rust",
                "tests/t.rs": "#[test] fn t() {}\n",
            },
            frozenset({RunStatus.BUILD_FAILED}),
        ),
        HardCase.KILLED: Alone(
            {
                "Cargo.toml": PACKAGE.format(name="a"),
                "src/lib.rs": """
                    #[test] fn a() {}
                    #[test] fn b() {
                        let command = format!("kill -9 {}", std::os::unix::process::parent_id());
                        std::process::Command::new("sh").arg("-c").arg(command).status().unwrap();
                    }
                """,
            },
            frozenset({RunStatus.NO_REPORT}),
        ),
        HardCase.NO_TESTS: Alone(
            {"Cargo.toml": PACKAGE.format(name="a"), "src/lib.rs": ""}, frozenset({RunStatus.COMPLETED})
        ),
    },
    lacks={
        HardCase.SUB_TEST: "libtest knows no sub-tests",
        HardCase.XFAIL: "with should_panic a panic is what makes a test pass, and libtest says no more than that",
        HardCase.XPASS: "a test with should_panic that does not panic fails",
    },
    chosen=(
        (b"tests/same.rs", b"tests/stops.rs"),
        frozenset(of("test/same", "same") + of("test/stops", "first", "stops", "third")),
    ),
)
