"""Rules for the C++ of this repository.

The warnings are errors here and only here: headers of other repositories are system headers
(`-isystem`), and their sources keep their own options.
"""

# GCC's flow analysis at -O3 blames inlined library code now and then, and differs with each
# version: those warnings are shown, but do not fail the build.
RELAYOUT_COPTS = [
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wno-error=array-bounds",
    "-Wno-error=maybe-uninitialized",
    "-Wno-error=restrict",
    "-Wno-error=stringop-overflow",
    "-Wno-error=stringop-overread",
    "-Wno-dangling-reference",
    "-O3",
    "-fvisibility=hidden",
]

def relayout_cc_library(name, copts = [], **kwargs):
    """A cc_library with the options of this repository."""
    native.cc_library(
        name = name,
        copts = RELAYOUT_COPTS + copts,
        linkstatic = True,
        **kwargs
    )

def relayout_cc_test(name, deps = [], copts = [], size = "small", **kwargs):
    """A cc_test on //cc/testing:test, which brings TEST, the expectations and main().

    Args:
      name: target name
      deps: as of cc_test, without //cc/testing:test
      copts: more compiler options
      size: as of cc_test
      **kwargs: passed to cc_test
    """
    native.cc_test(
        name = name,
        size = size,
        copts = RELAYOUT_COPTS + copts,
        linkstatic = True,
        deps = deps + ["//cc/testing:test"],
        **kwargs
    )
