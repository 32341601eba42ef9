#include "cc/rechunk/chunk_stream.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <expected>
#include <string>
#include <string_view>

#include "cc/base/compression.h"
#include "cc/base/crc32c.h"
#include "cc/base/result.h"
#include "cc/rechunk/stored_chunk.h"
#include "cc/testing/test.h"

namespace relayout::rechunk {
namespace {

constexpr CodecChain kChains[] = {
    {.has_inner_checksum = true},
    {.has_zstd = true},
    {.has_zstd = true, .has_outer_checksum = true},
    {.has_inner_checksum = true, .has_zstd = true},
    {.has_inner_checksum = true, .has_zstd = true, .has_outer_checksum = true},
};

std::string Content(size_t size) {
  std::string content(size, '\0');
  for (size_t i = 0; i < size; ++i) {
    content[i] = static_cast<char>(i * i / 7);
  }
  return content;
}

std::string WithChecksum(std::string bytes) {
  const uint32_t checksum = Crc32c(bytes);
  bytes.append(reinterpret_cast<const char*>(&checksum), sizeof(checksum));
  return bytes;
}

std::string Encode(std::string content, CodecChain chain) {
  if (chain.has_inner_checksum) content = WithChecksum(std::move(content));
  if (chain.has_zstd) content = *ZstdCompress(content, 3);
  if (chain.has_outer_checksum) content = WithChecksum(std::move(content));
  return content;
}

StoredBytes Stored(std::string_view bytes) {
  ocdbt::Value value;
  value.length = bytes.size();
  value.inline_data = bytes.data();
  return StoredBytes(value, nullptr);
}

Result<std::string> ReadStream(std::string_view stored, CodecChain chain,
                               size_t size, size_t piece) {
  PhaseTimes times;
  ChunkStream stream(Stored(stored), chain, size, /*num_buffer_bytes=*/1000);
  const auto opened = stream.Open();
  if (!opened.has_value()) return std::unexpected(opened.error());
  std::string content(size, '\0');
  // The last tenth is left to `Finish`.
  const size_t end = size - size / 10;
  while (stream.position() < end) {
    const std::span output(content.data() + stream.position(),
                           std::min(piece, end - stream.position()));
    RELAYOUT_RETURN_IF_ERROR(stream.Read(output, times));
  }
  std::string scratch(100, '\0');
  RELAYOUT_RETURN_IF_ERROR(stream.Finish(scratch, times));
  content.resize(end);
  return content;
}

Result<std::string> ReadWhole(std::string_view stored, CodecChain chain,
                              size_t size) {
  ZstdDecoder decoder;
  std::string output(size + kChecksumBytes, '\0');
  RELAYOUT_ASSIGN_OR_RETURN(const std::string_view content,
                            DecodeChunk(stored, chain, size, output, decoder));
  return std::string(content);
}

TEST(ReadsEachChain) {
  const std::string content = Content(20000);
  for (const CodecChain chain : kChains) {
    const std::string stored = Encode(content, chain);
    for (const size_t piece : {7, 4096, 100000}) {
      const auto stream = ReadStream(stored, chain, content.size(), piece);
      ASSERT_OK(stream);
      EXPECT_TRUE(*stream == content.substr(0, 18000));
    }
    const auto whole = ReadWhole(stored, chain, content.size());
    ASSERT_OK(whole);
    EXPECT_TRUE(*whole == content);
  }
}

TEST(CorruptWhenOfAnotherLength) {
  const std::string content = Content(20000);
  for (const CodecChain chain : kChains) {
    const std::string stored = Encode(content, chain);
    for (const size_t size : {19999, 20001}) {
      const auto stream = ReadStream(stored, chain, size, 4096);
      ASSERT_FALSE(stream.has_value());
      EXPECT_EQ(stream.error().kind, ErrorKind::kCorrupt);
      const auto whole = ReadWhole(stored, chain, size);
      ASSERT_FALSE(whole.has_value());
      EXPECT_EQ(whole.error().kind, ErrorKind::kCorrupt);
    }
  }
}

TEST(CorruptWhenAnyByteOfAChecksumChainChanges) {
  const std::string content = Content(500);
  for (const CodecChain chain : kChains) {
    if (!chain.has_inner_checksum && !chain.has_outer_checksum) continue;
    const std::string stored = Encode(content, chain);
    for (size_t i = 0; i < stored.size(); ++i) {
      std::string damaged = stored;
      damaged[i] ^= 4;
      const auto stream = ReadStream(damaged, chain, content.size(), 100);
      const auto whole = ReadWhole(damaged, chain, content.size());
      // Unused bits of a frame's header may change when only what it holds is
      // under a checksum.
      if (chain.has_outer_checksum || !chain.has_zstd) {
        EXPECT_FALSE(stream.has_value());
        EXPECT_FALSE(whole.has_value());
      } else if (whole.has_value()) {
        EXPECT_TRUE(*whole == content);
      }
    }
  }
}

TEST(CorruptWhenCutShortOrTooLong) {
  const std::string content = Content(5000);
  for (const CodecChain chain : kChains) {
    const std::string stored = Encode(content, chain);
    for (size_t size = 0; size < stored.size(); size += 13) {
      const std::string_view cut = std::string_view(stored).substr(0, size);
      EXPECT_FALSE(ReadStream(cut, chain, content.size(), 999).has_value());
      EXPECT_FALSE(ReadWhole(cut, chain, content.size()).has_value());
    }
    const auto longer =
        ReadStream(stored + "12345", chain, content.size(), 999);
    ASSERT_FALSE(longer.has_value());
    EXPECT_EQ(longer.error().kind, ErrorKind::kCorrupt);
  }
}

TEST(FrameWithoutLengthThatHoldsMoreIsCorrupt) {
  // As a stream of zstd writes it: the header does not say how much there is.
  const std::string_view frame(
      "\x28\xb5\x2f\xfd\x00\x00"  // window of 1 KiB
      "\x43\x06\x00"              // last block: 200 times
      "a",
      10);
  const CodecChain chain = {.has_zstd = true};
  const auto all = ReadStream(frame, chain, 200, 64);
  ASSERT_OK(all);
  EXPECT_EQ(*all, std::string(180, 'a'));
  const auto fewer = ReadStream(frame, chain, 150, 64);
  ASSERT_FALSE(fewer.has_value());
  EXPECT_CONTAINS(fewer.error().message, "more than 150 bytes");
  const auto more = ReadStream(frame, chain, 300, 64);
  ASSERT_FALSE(more.has_value());
  EXPECT_CONTAINS(more.error().message, "holds 200 bytes instead of 300");
}

}  // namespace
}  // namespace relayout::rechunk
