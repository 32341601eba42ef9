"""Repositories filled from hash-locked requirements files, through uv and pip."""

def _python(rctx):
    """What @python found; this makes the repository depend on it."""
    return json.decode(rctx.read(rctx.path(rctx.attr._python)))

def _run(rctx, what, arguments, **kwargs):
    result = rctx.execute(arguments, timeout = 3600, **kwargs)
    if result.return_code != 0:
        fail("{} failed ({}):\n{}\n{}".format(what, result.return_code, result.stdout, result.stderr))
    return result.stdout

_LOCKED = ["--require-hashes", "--no-deps"]

_UV_INSTALL = [
    "pip",
    "install",
    "--quiet",
    "--no-progress",
    "--no-config",
] + _LOCKED

_ONLY_WHEELS = ["--only-binary", ":all:"]

# @uv ------------------------------------------------------------------------------------------

_NO_PIP = """no pip could install uv. Looked at the interpreter's own pip, pip3, pip and uv on PATH.
On Debian, `apt-get install python3-pip` brings one.
"""

def _uv_repository_impl(rctx):
    info = _python(rctx)
    options = ["--only-binary", ":all:"] + _LOCKED + [
        "--target",
        rctx.path("."),
        "-r",
        rctx.path(rctx.attr.requirements),
    ]
    tools = [[info["executable"], "-I", "-m", "pip", "install", "--no-input", "--no-compile"]]
    tools += [[p, "install", "--no-input", "--no-compile"] for p in [rctx.which("pip3"), rctx.which("pip")] if p]
    if rctx.which("uv"):
        tools.append([rctx.which("uv"), "pip", "install", "--no-config", "--python", info["interpreter"]])
    errors = []
    for tool in tools:
        result = rctx.execute(tool + ["--quiet"] + options, timeout = 600)
        if result.return_code == 0:
            rctx.file("BUILD", "exports_files([\"bin/uv\"])\n", executable = False)
            return
        errors.append("{}:\n{}{}".format(" ".join([str(p) for p in tool]), result.stdout, result.stderr))
    fail(_NO_PIP + "\n".join(errors))

uv_repository = repository_rule(
    implementation = _uv_repository_impl,
    attrs = {
        "requirements": attr.label(mandatory = True, allow_single_file = True),
        "_python": attr.label(default = Label("@python//:info.json"), allow_single_file = True),
    },
)

# A pip repository -----------------------------------------------------------------------------

def _split(text, names):
    """Splits a lock file in two: (the entries of `names`, the others)."""
    chosen, others, current = [], [], None
    for line in text.split("\n"):
        if line and line[0] not in " #":
            name = line.split("==")[0].strip().replace("_", "-").lower()
            current = chosen if name in names else others
        if current != None:
            current.append(line)
    return "\n".join(chosen) + "\n", "\n".join(others) + "\n"

def _pip_repository_impl(rctx):
    info = _python(rctx)
    uv = rctx.path(rctx.attr._uv)
    site = rctx.path("site-packages")
    bases = []
    for base in rctx.attr.bases:
        # Reading it makes this repository depend on that one.
        directory = rctx.read(rctx.path(base)).strip()
        bases.append("{}={}".format(base.workspace_name, directory))

    text = rctx.read(rctx.path(rctx.attr.requirements))
    sources, wheels = _split(text, rctx.attr.sdists)
    rctx.file("wheels.txt", wheels, executable = False)
    _run(rctx, "uv pip install", [uv] + _UV_INSTALL + _ONLY_WHEELS + [
        "--python",
        info["interpreter"],
        "--target",
        site,
        "-r",
        rctx.path("wheels.txt"),
    ])

    if rctx.attr.sdists:
        # Without build isolation the backend is the one installed here, by its hash.
        rctx.file("sources.txt", sources, executable = False)
        _run(rctx, "uv venv", [uv, "venv", "--quiet", "--no-config", "--python", info["executable"], rctx.path("_build")])
        python = rctx.path("_build/bin/python3")
        _run(rctx, "uv pip install (build backend)", [uv] + _UV_INSTALL + _ONLY_WHEELS + [
            "--python",
            python,
            "-r",
            rctx.path(rctx.attr.backend),
        ])
        _run(rctx, "uv pip install (source archives)", [uv] + _UV_INSTALL + [
            "--no-binary",
            ":all:",
            "--no-build-isolation",
            "--python",
            python,
            "--target",
            site,
            "-r",
            rctx.path("sources.txt"),
        ])
        rctx.delete("_build")

    # Tests run in a sandbox where Python could not write these: without them each test would
    # compile all that it imports.
    rctx.execute([
        info["interpreter"],
        "-m",
        "compileall",
        "-q",
        "-j2",
        "-x",
        "/tests?/|_test\\.py$|/site-packages/bin/",
        site,
    ], timeout = 3600)

    rctx.file("extra", rctx.attr.extra_build_content, executable = False)
    options = []
    for base in bases:
        options += ["--base", base]
    for name, others in rctx.attr.unstated.items():
        for other in others:
            options += ["--needs", "{}={}".format(name, other)]
    _run(rctx, "gen_build", [
        info["executable"],
        "-B",
        rctx.path(rctx.attr._gen_build),
        "--site",
        site,
        "--extra",
        rctx.path("extra"),
        "--out",
        rctx.path("BUILD"),
    ] + options)
    rctx.delete("extra")
    rctx.file("site", str(site) + "\n", executable = False)

pip_repository = repository_rule(
    implementation = _pip_repository_impl,
    attrs = {
        "backend": attr.label(
            allow_single_file = True,
            doc = "Lock file of what builds the sdists.",
        ),
        "bases": attr.label_list(
            allow_files = True,
            doc = "@repository//:site of each pip repository whose distributions this one uses.",
        ),
        "extra_build_content": attr.string(),
        "requirements": attr.label(mandatory = True, allow_single_file = True),
        "sdists": attr.string_list(
            doc = "Distributions of the lock file that have no wheel; all others must have one.",
        ),
        "unstated": attr.string_list_dict(
            doc = "What a distribution imports and its metadata does not tell: " +
                  "{name: [others]}, or [\"*\"] for all of this repository.",
        ),
        "_gen_build": attr.label(default = Label("//tools/pip:gen_build.py"), allow_single_file = True),
        "_python": attr.label(default = Label("@python//:info.json"), allow_single_file = True),
        "_uv": attr.label(default = Label("@uv//:bin/uv"), allow_single_file = True),
    },
)

# A source distribution ------------------------------------------------------------------------

# Without the first directory, which each source distribution has.
_UNPACK = """
import pathlib, sys, tarfile
archive, target = sys.argv[1:]
with tarfile.open(archive) as tar:
  for member in tar:
    parts = pathlib.PurePosixPath(member.name).parts[1:]
    if parts:
      member.name = "/".join(parts)
      tar.extract(member, target, filter="data")
"""

def _sdist_repository_impl(rctx):
    info = _python(rctx)
    build_file = rctx.path(rctx.attr.build_file)

    # pip asks the build backend of an sdist for its metadata even where it is only to download
    # it. So that it does not install the newest backend for that, give it a locked one; and a
    # locked pip, since not each interpreter has one.
    _run(rctx, "uv pip install", [rctx.path(rctx.attr._uv)] + _UV_INSTALL + _ONLY_WHEELS + [
        "--python",
        info["interpreter"],
        "--target",
        rctx.path("_backend"),
        "-r",
        rctx.path(rctx.attr.backend),
    ])
    _run(rctx, "pip download", [
        info["interpreter"],
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-input",
        "--disable-pip-version-check",
        "--no-build-isolation",
        "--no-binary",
        ":all:",
    ] + _LOCKED + ["--dest", rctx.path("_sdist"), "-r", rctx.path(rctx.attr.requirements)], environment = {
        "PYTHONPATH": str(rctx.path("_backend")),
    })
    archives = rctx.path("_sdist").readdir()
    if len(archives) != 1:
        fail("expected one sdist, got {}".format(archives))

    # Not rctx.extract: with the Java libraries of Debian 13, its Bazel crashes on a tar file.
    _run(rctx, "unpacking", [info["interpreter"], "-c", _UNPACK, archives[0], rctx.path(".")])
    rctx.delete("_backend")
    rctx.delete("_sdist")
    rctx.delete("BUILD.bazel")
    rctx.file("BUILD", rctx.read(build_file), executable = False)

sdist_repository = repository_rule(
    implementation = _sdist_repository_impl,
    attrs = {
        "backend": attr.label(mandatory = True, allow_single_file = True),
        "build_file": attr.label(mandatory = True, allow_single_file = True),
        "requirements": attr.label(mandatory = True, allow_single_file = True),
        "_python": attr.label(default = Label("@python//:info.json"), allow_single_file = True),
        "_uv": attr.label(default = Label("@uv//:bin/uv"), allow_single_file = True),
    },
)
