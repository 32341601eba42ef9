#include <pybind11/pybind11.h>

#include "cc/bindings/register.h"

PYBIND11_MODULE(_native, module) {
  using namespace relayout::bindings;  // NOLINT(google-build-using-namespace)
  module.doc() = "The C++ core of relayout.";
  RegisterStatus();
  RegisterCodecs(module);
  RegisterListing(module);
  RegisterMoves(module);
  RegisterRekey(module);
  RegisterRechunk(module);
  RegisterShards(module);
}
