#include "cc/base/byte_view.h"

#include <cstring>
#include <string>
#include <utility>

#include "cc/base/byte_buffer.h"
#include "cc/testing/test.h"

namespace relayout {
namespace {

TEST(PartKeepsTheWholeAlive) {
  ByteView part;
  {
    const ByteView whole = ByteView::Own(std::string(100, 'x') + "tail");
    part = whole.Part(whole.bytes().substr(100));
  }
  EXPECT_EQ(part.bytes(), "tail");
  EXPECT_EQ(part.size(), 4);
}

TEST(OwnsShortStringsToo) {
  ByteView view = ByteView::Own("ab");
  const ByteView moved = std::move(view);
  EXPECT_EQ(moved.bytes(), "ab");
}

TEST(BufferBecomesView) {
  ByteBuffer buffer(4);
  std::memcpy(buffer.data(), "abcd", 4);
  const ByteView view = std::move(buffer).Release(3);
  EXPECT_EQ(view.bytes(), "abc");
}

TEST(EmptyBufferBecomesEmptyView) {
  EXPECT_EQ(ByteBuffer(0).size(), 0);
  EXPECT_EQ(ByteBuffer(0).Release(0).bytes(), "");
}

}  // namespace
}  // namespace relayout
