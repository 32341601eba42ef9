#ifndef RELAYOUT_CC_BINDINGS_STATUS_H_
#define RELAYOUT_CC_BINDINGS_STATUS_H_

/// \file
/// From errors to Python exceptions.

#include <exception>
#include <utility>

#include "cc/base/result.h"

namespace relayout::bindings {

/// Carries an error to Python; the only exception of this code base.
class ErrorException : public std::exception {
 public:
  explicit ErrorException(Error error) : error_(std::move(error)) {}

  const Error& error() const { return error_; }
  const char* what() const noexcept override { return error_.message.c_str(); }

 private:
  Error error_;
};

/// Returns the value of `result` or throws its error.
template <typename T>
T ValueOrThrow(Result<T> result) {
  if (!result.has_value()) throw ErrorException(std::move(result).error());
  return *std::move(result);
}

}  // namespace relayout::bindings

#endif  // RELAYOUT_CC_BINDINGS_STATUS_H_
