#ifndef RELAYOUT_CC_IO_OS_ERROR_H_
#define RELAYOUT_CC_IO_OS_ERROR_H_

#include <string>

namespace relayout::io {

/// Returns the system's text for an `errno` value.
std::string OsErrorText(int error_number);

}  // namespace relayout::io

#endif  // RELAYOUT_CC_IO_OS_ERROR_H_
