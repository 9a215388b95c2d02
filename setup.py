"""What pyproject.toml cannot say: the C extension, and that no folder is missing."""

from pathlib import Path

from setuptools import Extension, setup

if not all(Path("pgsimhash", name, "__init__.py").is_file() for name in ("migrations", "sql")):
    raise SystemExit(
        "pgsimhash/sql and pgsimhash/migrations must be links to the folders above them, and this "
        "copy of the repository has no links. Use a clone by git (on Windows: git clone "
        "-c core.symlinks=true), or unpack the ZIP archive with unzip. To repair this copy: "
        "rm pgsimhash/sql pgsimhash/migrations && cp -R sql migrations pgsimhash/"
    )

# Optional: without a compiler it is skipped. One wheel for each platform serves all versions of
# Python. A compiler may not fuse multiplications and additions: results are the same everywhere.
native = Extension(
    "pgsimhash._native",
    sources=sorted(map(str, Path("native").glob("*.c"))),
    depends=sorted(map(str, Path("native").glob("*.h"))),
    extra_compile_args=[
        "-std=c11",
        "-O3",
        "-ffp-contract=off",
        "-fvisibility=hidden",
        "-Wall",
        "-Wextra",
    ],
    py_limited_api=True,
    optional=True,
)
setup(ext_modules=[native], options={"bdist_wheel": {"py_limited_api": "cp311"}})
