// An extension module that proves the build of one: pybind11, zstd, PyInit.

#include <pybind11/pybind11.h>
#include <zstd.h>

#include <string>

PYBIND11_MODULE(selftest_ext, m) {
  m.def("zstd_version", [] { return std::string(ZSTD_versionString()); });
  m.def("compress", [](const std::string& data) {
    std::string out(ZSTD_compressBound(data.size()), '\0');
    out.resize(ZSTD_compress(out.data(), out.size(), data.data(), data.size(),
                             /*compressionLevel=*/3));
    return pybind11::bytes(out);
  });
}
