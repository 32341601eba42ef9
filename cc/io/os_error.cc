#include "cc/io/os_error.h"

#include <string>
#include <system_error>

namespace relayout::io {

std::string OsErrorText(int error_number) {
  return std::generic_category().message(error_number);
}

}  // namespace relayout::io
