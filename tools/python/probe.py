"""Prints what @python must know of the interpreter that runs this, as JSON."""

import json
import os
import struct
import sys
import sysconfig

include = sysconfig.get_paths()["include"]
problem = ""
if sys.implementation.name != "cpython":
  problem = "not CPython"
elif struct.calcsize("P") != 8:
  problem = "not 64-bit"
elif sysconfig.get_config_var("Py_GIL_DISABLED"):
  problem = "a free-threaded build"
elif not os.path.isfile(os.path.join(include, "Python.h")):
  problem = "no Python.h in " + include

print(
  json.dumps(
    {
      "version": ".".join(map(str, sys.version_info[:3])),
      "hexversion": sys.hexversion,
      "problem": problem,
      "executable": os.path.realpath(sys.executable),
      "include": include,
      "ext_suffix": sysconfig.get_config_var("EXT_SUFFIX"),
      "abi_tag": "cp{}{}".format(*sys.version_info[:2]),
      "platform": sysconfig.get_platform(),
    },
    sort_keys=True,
  )
)
