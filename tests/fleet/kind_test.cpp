#include "fleet/kind.h"

#include <gtest/gtest.h>

namespace pruner {
namespace {

Target target(const char* text, int threads) {
  const Result<Target> parsed = parse_target(text, threads);
  EXPECT_TRUE(parsed.ok());
  return *parsed;
}

TEST(Kind, TellsApartWhatDecidesTimes) {
  const std::string kind = kind_of(target("llvm -mcpu=haswell", 2));
  EXPECT_EQ(kind, kind_of(target("llvm -mcpu=haswell", 2)));
  EXPECT_NE(kind, kind_of(target("llvm -mcpu=haswell", 4)));
  EXPECT_NE(kind, kind_of(target("llvm -mcpu=znver4", 2)));
  Target other = target("llvm -mcpu=haswell", 2);
  other.l3_bytes *= 2;
  EXPECT_NE(kind, kind_of(other));
}

TEST(Kind, IsAToken) {
  for (const char* text : {"llvm", "llvm -mcpu=haswell", "cuda --arch=sm_80"}) {
    const std::string kind = kind_of(target(text, 1));
    EXPECT_EQ(kind.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"), std::string::npos)
        << kind;
    EXPECT_LE(kind.size(), 40u);
  }
}

}  // namespace
}  // namespace pruner
