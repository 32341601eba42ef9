"""Imports every module of one package of relayout."""

import importlib
import pkgutil
import sys


def main():
  [name] = sys.argv[1:]
  package = importlib.import_module(f"relayout.{name}")
  # Not all that lies beside: the package may have optional parts.
  modules = [
    module.name
    for module in pkgutil.iter_modules(package.__path__)
    if not module.ispkg and not module.name.endswith("_test")
  ]
  assert modules, f"{name} has no modules"
  for module in modules:
    importlib.import_module(f"relayout.{name}.{module}")
  jax_is_loaded = "jax" in sys.modules
  assert jax_is_loaded == (name == "optimizers"), "JAX is loaded, or is not"


if __name__ == "__main__":
  main()
