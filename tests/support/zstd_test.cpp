#include "support/zstd.h"

#include "golden.h"
#include "support/rng.h"

namespace pruner {
namespace {

std::string noise(size_t bytes, Rng& rng) {
  std::string text(bytes, '\0');
  for (char& c : text) c = static_cast<char>(rng.below(256));
  return text;
}

TEST(Pieces, AreUnpackedAsTheyWerePacked) {
  Rng rng(1);
  const std::string common = noise(300'000, rng);
  std::vector<std::string> pieces = {"", "one", common};
  for (int i = 0; i < 8; ++i) pieces.push_back(common + noise(100, rng));
  PiecePacker packer;
  PieceUnpacker unpacker;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Result<std::string> packed = packer.pack(pieces[i]);
    ASSERT_TRUE(packed.ok());
    EXPECT_LT(packed->size(), i > 2 ? 2000u : 310'000u) << "it is like those before";
    EXPECT_EQ(*unpacker.unpack(*packed, pieces[i].size()), pieces[i]);
  }
}

TEST(Pieces, ThatAreDamagedOrOutOfOrderAreErrors) {
  Rng rng(1);
  const std::string first = noise(5000, rng), second = first + "more";
  PiecePacker packer;
  const std::string one = *packer.pack(first), two = *packer.pack(second);
  PieceUnpacker fresh;
  const Result<std::string> early = fresh.unpack(two, second.size());
  EXPECT_TRUE(!early.ok() || *early != second);
  EXPECT_FALSE(PieceUnpacker().unpack(one, first.size() - 1).ok());
  EXPECT_ERROR(PieceUnpacker().unpack(one, first.size() + 1), "is not of 5001 bytes");
  EXPECT_FALSE(PieceUnpacker().unpack(one.substr(0, one.size() / 2), first.size()).ok());
  EXPECT_FALSE(PieceUnpacker().unpack("nonsense", 8).ok());
}

}  // namespace
}  // namespace pruner
