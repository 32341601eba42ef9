#ifndef RELAYOUT_CC_BASE_RESULT_H_
#define RELAYOUT_CC_BASE_RESULT_H_

/// \file
/// Results that are either a value or an error with a kind and a message.

#include <cstdint>
#include <expected>
#include <string>
#include <utility>

namespace relayout {

/// Whose fault an error is; the Python module maps each kind to one exception.
enum class ErrorKind : uint8_t {
  kCorrupt,          ///< the stored bytes are damaged or hostile
  kInvalidArgument,  ///< the caller asked for something impossible
  kUnsupported,      ///< well-formed, but a form that is not handled
  kSystem,           ///< the operating system refused
};

struct Error {
  ErrorKind kind;
  std::string message;
};

template <typename T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

[[nodiscard]] inline std::unexpected<Error> Corrupt(std::string message) {
  return std::unexpected(Error{ErrorKind::kCorrupt, std::move(message)});
}

[[nodiscard]] inline std::unexpected<Error> InvalidArgument(
    std::string message) {
  return std::unexpected(
      Error{ErrorKind::kInvalidArgument, std::move(message)});
}

[[nodiscard]] inline std::unexpected<Error> Unsupported(std::string message) {
  return std::unexpected(Error{ErrorKind::kUnsupported, std::move(message)});
}

[[nodiscard]] inline std::unexpected<Error> SystemError(std::string message) {
  return std::unexpected(Error{ErrorKind::kSystem, std::move(message)});
}

/// Returns `error` with "`context`: " put before its message.
[[nodiscard]] inline std::unexpected<Error> InContext(
    Error error, const std::string& context) {
  error.message.insert(0, context + ": ");
  return std::unexpected(std::move(error));
}

}  // namespace relayout

#define RELAYOUT_CONCAT_INNER(a, b) a##b
#define RELAYOUT_CONCAT(a, b) RELAYOUT_CONCAT_INNER(a, b)

/// Returns the error of `expr`, if it has one, from the enclosing function.
#define RELAYOUT_RETURN_IF_ERROR(expr)                                 \
  do {                                                                 \
    if (auto relayout_status = (expr); !relayout_status.has_value()) { \
      return std::unexpected(std::move(relayout_status).error());      \
    }                                                                  \
  } while (false)

/// Declares `lhs` with the value of `expr`, or returns its error.
#define RELAYOUT_ASSIGN_OR_RETURN(lhs, expr)                                   \
  RELAYOUT_ASSIGN_OR_RETURN_INNER(RELAYOUT_CONCAT(relayout_result_, __LINE__), \
                                  lhs, expr)
#define RELAYOUT_ASSIGN_OR_RETURN_INNER(result, lhs, expr) \
  auto result = (expr);                                    \
  if (!result.has_value()) {                               \
    return std::unexpected(std::move(result).error());     \
  }                                                        \
  lhs = *std::move(result)

#endif  // RELAYOUT_CC_BASE_RESULT_H_
