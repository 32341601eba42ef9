#ifndef RELAYOUT_CC_RECHUNK_CAST_H_
#define RELAYOUT_CC_RECHUNK_CAST_H_

/// \file
/// Conversions between floating-point types, as NumPy and ml_dtypes do them:
/// to nearest, ties to even, overflow to infinity.  Elements are unsigned
/// integers with the bits of the number.

#include <bit>
#include <cstdint>

#include "cc/rechunk/element.h"

namespace relayout::rechunk {

template <FloatKind kKind>
struct FloatBits;
template <>
struct FloatBits<FloatKind::kFloat16> {
  using Type = uint16_t;
};
template <>
struct FloatBits<FloatKind::kBfloat16> {
  using Type = uint16_t;
};
template <>
struct FloatBits<FloatKind::kFloat32> {
  using Type = uint32_t;
};
template <>
struct FloatBits<FloatKind::kFloat64> {
  using Type = uint64_t;
};

namespace internal_cast {

inline uint32_t Float64To32(uint64_t bits) {
  return std::bit_cast<uint32_t>(
      static_cast<float>(std::bit_cast<double>(bits)));
}

inline uint64_t Float32To64(uint32_t bits) {
  return std::bit_cast<uint64_t>(
      static_cast<double>(std::bit_cast<float>(bits)));
}

/// A NaN becomes the one NaN of its sign.
inline uint16_t Float32ToBfloat16(uint32_t bits) {
  const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const uint32_t nan = ((bits >> 16) & 0x8000) | 0x7fc0;
  const bool is_nan = (bits & 0x7fffffff) > 0x7f800000;
  return static_cast<uint16_t>(is_nan ? nan : rounded);
}

inline uint32_t Bfloat16To32(uint16_t bits) { return uint32_t{bits} << 16; }

inline uint32_t Float16To32(uint16_t bits) {
  const uint32_t sign = uint32_t{bits & 0x8000U} << 16;
  const uint32_t rest = bits & 0x7fffU;
  if (rest >= 0x7c00) return sign | 0x7f800000 | (rest & 0x3ff) << 13;
  if (rest >= 0x400) return sign | ((rest << 13) + (112U << 23));
  // A subnormal number is `rest` times the smallest one.
  const float value = static_cast<float>(rest) * 0x1p-24F;
  return sign | std::bit_cast<uint32_t>(value);
}

inline uint64_t Float16To64(uint16_t bits) {
  const bool is_special = (bits & 0x7c00U) == 0x7c00U;
  if (!is_special) return Float32To64(Float16To32(bits));
  // The processor would make a quiet NaN of a signaling one.
  const uint64_t sign = uint64_t{bits & 0x8000U} << 48;
  return sign | uint64_t{0x7ff} << 52 | uint64_t{bits & 0x3ffU} << 42;
}

/// Rounds the number with `kMantissaBits` bits behind the point to float16;
/// its exponent is `kBias` more than that of the power of two.
template <typename Bits, int kMantissaBits, int kBias>
uint16_t NarrowToFloat16(Bits bits) {
  constexpr int kDropped = kMantissaBits - 10;
  constexpr Bits kSign = Bits{1} << (sizeof(Bits) * 8 - 1);
  constexpr Bits kInfinity = (kSign - 1) >> kMantissaBits << kMantissaBits;
  const auto sign = static_cast<uint16_t>((bits & kSign) != 0 ? 0x8000U : 0U);
  const Bits rest = bits & ~kSign;
  if (rest >= kInfinity) {
    const auto payload = static_cast<uint16_t>((rest - kInfinity) >> kDropped);
    const bool lost = rest != kInfinity && payload == 0;
    return sign | 0x7c00U | payload | (lost ? 1U : 0U);
  }
  const int exponent = static_cast<int>(rest >> kMantissaBits) - kBias;
  if (exponent > 15) return sign | 0x7c00U;
  if (exponent < -25) return sign;
  const Bits fraction = rest & ((Bits{1} << kMantissaBits) - 1);
  const Bits mantissa = fraction | Bits{1} << kMantissaBits;
  // A subnormal result has the exponent -14 and drops more bits.
  const int extra = exponent < -14 ? -14 - exponent : 0;
  const int shift = kDropped + extra;
  const Bits half = Bits{1} << (shift - 1);
  const Bits kept = mantissa >> shift;
  const Bits dropped = mantissa & ((Bits{1} << shift) - 1);
  const Bits up = dropped > half || (dropped == half && (kept & 1) != 0);
  // The leading bit of `kept` counts as one step of the exponent, and so does
  // a carry.
  const Bits base =
      extra > 0 ? Bits{0} : static_cast<Bits>(exponent + 14) << 10;
  return static_cast<uint16_t>(sign | (base + kept + up));
}

inline uint16_t Float32To16(uint32_t bits) {
  return NarrowToFloat16<uint32_t, 23, 127>(bits);
}

inline uint16_t Float64To16(uint64_t bits) {
  return NarrowToFloat16<uint64_t, 52, 1023>(bits);
}

/// A NaN becomes the one NaN of its sign.
inline uint16_t Bfloat16To16(uint16_t bits) {
  const bool is_nan = (bits & 0x7fffU) > 0x7f80U;
  if (is_nan) return static_cast<uint16_t>((bits & 0x8000U) | 0x7e00U);
  return Float32To16(Bfloat16To32(bits));
}

}  // namespace internal_cast

/// Returns `bits`, a number of kind `kSource`, as one of kind `kTarget`.
template <FloatKind kSource, FloatKind kTarget>
typename FloatBits<kTarget>::Type Cast(typename FloatBits<kSource>::Type bits) {
  namespace impl = internal_cast;
  using enum FloatKind;
  if constexpr (kSource == kTarget) {
    return bits;
  } else if constexpr (kSource == kFloat64 && kTarget == kFloat16) {
    return impl::Float64To16(bits);
  } else if constexpr (kSource == kFloat16 && kTarget == kFloat64) {
    return impl::Float16To64(bits);
  } else if constexpr (kSource == kBfloat16 && kTarget == kFloat16) {
    return impl::Bfloat16To16(bits);
  } else if constexpr (kSource == kFloat64) {
    return Cast<kFloat32, kTarget>(impl::Float64To32(bits));
  } else if constexpr (kSource == kFloat16) {
    return Cast<kFloat32, kTarget>(impl::Float16To32(bits));
  } else if constexpr (kSource == kBfloat16) {
    return Cast<kFloat32, kTarget>(impl::Bfloat16To32(bits));
  } else if constexpr (kTarget == kFloat64) {
    return impl::Float32To64(bits);
  } else if constexpr (kTarget == kFloat16) {
    return impl::Float32To16(bits);
  } else {
    return impl::Float32ToBfloat16(bits);
  }
}

}  // namespace relayout::rechunk

#endif  // RELAYOUT_CC_RECHUNK_CAST_H_
