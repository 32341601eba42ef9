#ifndef RELAYOUT_CC_RECHUNK_PHASE_TIMES_H_
#define RELAYOUT_CC_RECHUNK_PHASE_TIMES_H_

/// \file
/// Where the time of a rewrite goes.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace relayout::rechunk {

enum class Phase : uint8_t { kRead, kDecode, kCopy, kEncode, kWrite, kWait };

inline constexpr std::array<const char*, 6> kPhaseNames = {
    "read", "decode", "copy", "encode", "write", "wait"};

/// Seconds by phase.
struct PhaseTimes {
  std::array<double, kPhaseNames.size()> seconds{};

  void Add(const PhaseTimes& other) {
    for (size_t i = 0; i < seconds.size(); ++i) seconds[i] += other.seconds[i];
  }
};

/// Adds the time that it lives to a phase.
class PhaseTimer {
 public:
  PhaseTimer(Phase phase, PhaseTimes& times)
      : seconds_(times.seconds[static_cast<size_t>(phase)]),
        start_(Clock::now()) {}
  ~PhaseTimer() {
    seconds_ += std::chrono::duration<double>(Clock::now() - start_).count();
  }
  PhaseTimer(const PhaseTimer&) = delete;
  PhaseTimer& operator=(const PhaseTimer&) = delete;

 private:
  using Clock = std::chrono::steady_clock;

  double& seconds_;
  Clock::time_point start_;
};

}  // namespace relayout::rechunk

#endif  // RELAYOUT_CC_RECHUNK_PHASE_TIMES_H_
