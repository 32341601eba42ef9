/// \file
/// How long zstd alone takes to decode some frames and to encode their content
/// again in pieces, on all processors and from memory to memory.
///
///     codec_bound DECODED_BYTES PIECE_BYTES LEVEL FRAME_BYTES...
///
/// The frames are read from the standard input, one after the other; each has
/// DECODED_BYTES of content.  Prints the seconds of decoding and of encoding.

#include <zstd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

using Buffer = std::unique_ptr<char[]>;

void Require(bool condition, const char* what) {
  if (condition) return;
  std::cerr << "codec_bound: " << what << '\n';
  std::exit(1);
}

/// Calls `make_body()(i)` for each `i` below `num_items`, with a body for each
/// processor; returns seconds.  Making the bodies does not count.
double TimeOnAllProcessors(
    size_t num_items,
    const std::function<std::function<void(size_t)>()>& make_body) {
  const size_t num_threads = std::thread::hardware_concurrency();
  std::vector<std::function<void(size_t)>> bodies;
  for (size_t i = 0; i < num_threads; ++i) bodies.push_back(make_body());
  std::atomic<size_t> next = 0;
  const auto start = std::chrono::steady_clock::now();
  {
    std::vector<std::jthread> threads;
    for (const auto& body : bodies) {
      threads.emplace_back([&next, &body, num_items] {
        for (size_t i = next++; i < num_items; i = next++) body(i);
      });
    }
  }
  const auto taken = std::chrono::steady_clock::now() - start;
  return std::chrono::duration<double>(taken).count();
}

/// Returns a buffer whose pages are there.
Buffer MakeBuffer(size_t num_bytes) {
  return std::make_unique<char[]>(num_bytes);
}

double Decode(const std::vector<std::string>& frames, size_t decoded_bytes,
              std::vector<Buffer>& decoded) {
  return TimeOnAllProcessors(frames.size(), [&] {
    std::shared_ptr<ZSTD_DCtx> context(ZSTD_createDCtx(), ZSTD_freeDCtx);
    return [&, context](size_t i) {
      const size_t size =
          ZSTD_decompressDCtx(context.get(), decoded[i].get(), decoded_bytes,
                              frames[i].data(), frames[i].size());
      Require(size == decoded_bytes, "a frame is damaged");
    };
  });
}

double Encode(const std::vector<Buffer>& decoded, size_t decoded_bytes,
              size_t piece_bytes, int level) {
  const size_t per_frame = (decoded_bytes + piece_bytes - 1) / piece_bytes;
  const size_t bound = ZSTD_compressBound(piece_bytes);
  return TimeOnAllProcessors(decoded.size() * per_frame, [&] {
    std::shared_ptr<ZSTD_CCtx> context(ZSTD_createCCtx(), ZSTD_freeCCtx);
    std::shared_ptr<char[]> output = MakeBuffer(bound);
    return [&, context, output](size_t i) {
      const size_t start = i % per_frame * piece_bytes;
      const size_t size = ZSTD_compressCCtx(
          context.get(), output.get(), bound,
          decoded[i / per_frame].get() + start,
          std::min(piece_bytes, decoded_bytes - start), level);
      Require(!ZSTD_isError(size), "a piece can't be encoded");
    };
  });
}

std::string ReadFrame(size_t num_bytes) {
  std::string frame(num_bytes, '\0');
  std::cin.read(frame.data(), static_cast<std::streamsize>(num_bytes));
  Require(!std::cin.fail(), "the input ends early");
  return frame;
}

}  // namespace

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  Require(argc > 4, "DECODED_BYTES PIECE_BYTES LEVEL FRAME_BYTES...");
  const size_t decoded_bytes = std::stoull(argv[1]);
  const size_t piece_bytes = std::stoull(argv[2]);
  const int level = std::stoi(argv[3]);
  std::vector<std::string> frames;
  std::vector<Buffer> decoded;
  for (int i = 4; i < argc; ++i) {
    frames.push_back(ReadFrame(std::stoull(argv[i])));
    decoded.push_back(MakeBuffer(decoded_bytes));
  }
  std::cout << Decode(frames, decoded_bytes, decoded) << '\n';
  std::cout << Encode(decoded, decoded_bytes, piece_bytes, level) << '\n';
}
