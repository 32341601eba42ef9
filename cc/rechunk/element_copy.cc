#include "cc/rechunk/element_copy.h"

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "cc/base/quote.h"
#include "cc/base/result.h"
#include "cc/base/str_cat.h"
#include "cc/rechunk/cast.h"
#include "cc/rechunk/element.h"

namespace relayout::rechunk {
namespace {

static_assert(std::endian::native == std::endian::little);

using Wide = std::array<uint64_t, 2>;

template <typename T>
T Load(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

/// Applies `Convert` to each element.
template <typename Source, typename Target, Target (*Convert)(Source)>
void Run(const ElementLoop& loop) {
  const bool is_dense = loop.source_inner == sizeof(Source) &&
                        loop.target_inner == sizeof(Target);
  for (uint64_t i = 0; i < loop.num_outer; ++i) {
    const char* source =
        loop.source + static_cast<ptrdiff_t>(i) * loop.source_outer;
    char* target = loop.target + static_cast<ptrdiff_t>(i) * loop.target_outer;
    // Twice the same loop: the strides of the first are known.
    if (is_dense) {
      for (uint64_t j = 0; j < loop.num_inner; ++j) {
        const Target value = Convert(Load<Source>(source + j * sizeof(Source)));
        std::memcpy(target + j * sizeof(Target), &value, sizeof(Target));
      }
      continue;
    }
    for (uint64_t j = 0; j < loop.num_inner; ++j) {
      const Target value = Convert(Load<Source>(source));
      std::memcpy(target, &value, sizeof(Target));
      source += loop.source_inner;
      target += loop.target_inner;
    }
  }
}

template <typename T>
T Keep(T value) {
  return value;
}

/// Elements that do not change: those side by side in one go.
template <typename T>
void Move(const ElementLoop& loop) {
  if (loop.source_inner != sizeof(T) || loop.target_inner != sizeof(T)) {
    Run<T, T, Keep<T>>(loop);
    return;
  }
  for (uint64_t i = 0; i < loop.num_outer; ++i) {
    const auto n = static_cast<ptrdiff_t>(i);
    std::memcpy(loop.target + n * loop.target_outer,
                loop.source + n * loop.source_outer,
                loop.num_inner * sizeof(T));
  }
}

template <std::unsigned_integral T>
T Swap(T value) {
  return std::byteswap(value);
}

/// Swaps the bytes of each half of a complex number.
uint64_t SwapHalves(uint64_t value) {
  return std::rotr(std::byteswap(value), 32);
}

Wide SwapWideHalves(Wide value) {
  return {std::byteswap(value[0]), std::byteswap(value[1])};
}

Result<CopyElements> SelectSwap(const ElementType& type) {
  if (type.num_bytes == 8 && type.num_swap_bytes == 4) {
    return &Run<uint64_t, uint64_t, SwapHalves>;
  }
  switch (type.num_bytes) {
    case 2:
      return &Run<uint16_t, uint16_t, Swap<uint16_t>>;
    case 4:
      return &Run<uint32_t, uint32_t, Swap<uint32_t>>;
    case 8:
      return &Run<uint64_t, uint64_t, Swap<uint64_t>>;
    default:
      return &Run<Wide, Wide, SwapWideHalves>;
  }
}

CopyElements SelectMove(uint32_t num_bytes) {
  switch (num_bytes) {
    case 1:
      return &Move<uint8_t>;
    case 2:
      return &Move<uint16_t>;
    case 4:
      return &Move<uint32_t>;
    case 8:
      return &Move<uint64_t>;
    default:
      return &Move<Wide>;
  }
}

template <FloatKind kSource, FloatKind kTarget, bool kSwap>
typename FloatBits<kTarget>::Type Convert(
    typename FloatBits<kSource>::Type bits) {
  return Cast<kSource, kTarget>(kSwap ? std::byteswap(bits) : bits);
}

template <FloatKind kSource, FloatKind kTarget>
CopyElements SelectCast(bool big_endian) {
  using Source = FloatBits<kSource>::Type;
  using Target = FloatBits<kTarget>::Type;
  return big_endian ? &Run<Source, Target, Convert<kSource, kTarget, true>>
                    : &Run<Source, Target, Convert<kSource, kTarget, false>>;
}

template <FloatKind kSource>
CopyElements SelectCastFrom(FloatKind target, bool big_endian) {
  switch (target) {
    case FloatKind::kFloat16:
      return SelectCast<kSource, FloatKind::kFloat16>(big_endian);
    case FloatKind::kBfloat16:
      return SelectCast<kSource, FloatKind::kBfloat16>(big_endian);
    case FloatKind::kFloat32:
      return SelectCast<kSource, FloatKind::kFloat32>(big_endian);
    case FloatKind::kFloat64:
      return SelectCast<kSource, FloatKind::kFloat64>(big_endian);
    case FloatKind::kNone:
      return nullptr;
  }
  return nullptr;
}

CopyElements SelectCast(FloatKind source, FloatKind target, bool big_endian) {
  switch (source) {
    case FloatKind::kFloat16:
      return SelectCastFrom<FloatKind::kFloat16>(target, big_endian);
    case FloatKind::kBfloat16:
      return SelectCastFrom<FloatKind::kBfloat16>(target, big_endian);
    case FloatKind::kFloat32:
      return SelectCastFrom<FloatKind::kFloat32>(target, big_endian);
    case FloatKind::kFloat64:
      return SelectCastFrom<FloatKind::kFloat64>(target, big_endian);
    case FloatKind::kNone:
      return nullptr;
  }
  return nullptr;
}

}  // namespace

Result<CopyElements> SelectCopy(const ElementType& source, bool big_endian,
                                const ElementType& target) {
  if (source.name == target.name) {
    if (big_endian && source.num_bytes > 1) return SelectSwap(source);
    return SelectMove(source.num_bytes);
  }
  const CopyElements cast = SelectCast(source.kind, target.kind, big_endian);
  if (cast != nullptr) return cast;
  return InvalidArgument(StrCat("can't cast dtype ", Quote(source.name), " to ",
                                Quote(target.name)));
}

}  // namespace relayout::rechunk
