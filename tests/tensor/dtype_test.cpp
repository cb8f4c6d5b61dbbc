#include "tensor/dtype.h"

#include <gtest/gtest.h>

namespace pruner {
namespace {

TEST(Dtype, NamesReadBack) {
  for (DType t : {DType::kFloat32,
                  DType::kFloat16,
                  DType::kInt64,
                  DType::kInt32,
                  DType::kInt8,
                  DType::kBool}) {
    EXPECT_EQ(parse_dtype(dtype_name(t)), t);
  }
  EXPECT_FALSE(parse_dtype("complex64"));
}

}  // namespace
}  // namespace pruner
