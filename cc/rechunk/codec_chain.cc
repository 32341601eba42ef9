#include "cc/rechunk/codec_chain.h"

#include <string>
#include <vector>

#include "cc/base/quote.h"
#include "cc/base/result.h"
#include "cc/base/str_cat.h"
#include "cc/rechunk/task.h"

namespace relayout::rechunk {

Result<CodecChain> ParseCodecChain(const std::vector<std::string>& names) {
  CodecChain chain;
  for (const std::string& name : names) {
    bool& is_used = name == "zstd"   ? chain.has_zstd
                    : chain.has_zstd ? chain.has_outer_checksum
                                     : chain.has_inner_checksum;
    if (name != "zstd" && name != "crc32c") {
      return Unsupported(StrCat("codec ", Quote(name), " can't be decoded"));
    }
    if (is_used) {
      return Unsupported(
          StrCat("codec ", Quote(name), " occurs too often in one chain"));
    }
    is_used = true;
  }
  return chain;
}

}  // namespace relayout::rechunk
