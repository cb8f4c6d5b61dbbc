#include "tensor/transform.h"

#include <cmath>

#include "golden.h"
#include "naive.h"
#include "tensor/pack.h"

namespace pruner {
namespace {

using enum Transform;
using Shape = std::vector<int64_t>;

Tensor drawn_tensor(Shape shape) {
  Rng rng(7);
  Tensor tensor(DType::kFloat32, std::move(shape));
  for (float& x : tensor.values<float>()) x = static_cast<float>(1e3 * (rng.uniform() - 0.5));
  return tensor;
}

TEST(Transform, SaysTheShapeAndTypeOfWhatItMakes) {
  const Tensor weight = drawn_tensor({3, 3, 3, 5});
  for (const Transform transform :
       {kNone, kWinograd2, kWinograd4, kBfloat16Parts2, kBfloat16Parts3, kLastFirst}) {
    const Tensor made = transformed(weight, transform);
    EXPECT_EQ(made.shape(), transformed_shape(weight.shape(), transform));
    EXPECT_EQ(made.dtype(), transformed_type(weight.dtype(), transform));
  }
}

TEST(Transform, IsFoundByItsName) {
  for (const Transform transform :
       {kWinograd2, kWinograd4, kBfloat16Parts2, kBfloat16Parts3, kLastFirst})
    EXPECT_EQ(find_transform(transform_name(transform)), transform);
  EXPECT_EQ(find_transform("none"), std::nullopt);
  EXPECT_EQ(find_transform("winograd-3x3"), std::nullopt);
}

TEST(Transform, MovesTheLastDimensionToTheFront) {
  const Tensor weight = drawn_tensor({2, 3, 5});
  const Tensor made = transformed(weight, kLastFirst);
  EXPECT_EQ(made.shape(), (Shape{5, 2, 3}));
  for (int64_t row = 0; row < 6; ++row)
    for (int64_t column = 0; column < 5; ++column)
      EXPECT_EQ(made.get(column * 6 + row), weight.get(row * 5 + column));
}

TEST(Bfloat16Parts, AddUpToTheNumber) {
  const Tensor tensor = drawn_tensor({4, 25});
  const Tensor two = transformed(tensor, kBfloat16Parts2);
  const Tensor three = transformed(tensor, kBfloat16Parts3);
  EXPECT_EQ(two.shape(), (Shape{2, 4, 25}));
  EXPECT_EQ(three.shape(), (Shape{4, 4, 25}));
  for (int64_t i = 0; i < 100; ++i) {
    const double x = tensor.get(i), high = two.get(i), low = two.get(100 + i);
    EXPECT_EQ(high, decode_float(DType::kBFloat16, encode_float(DType::kBFloat16, x)));
    EXPECT_LE(std::abs(low), std::ldexp(std::abs(x), -8));
    EXPECT_LE(std::abs(x - high - low), std::ldexp(std::abs(x), -17));
    // The first part is there twice.
    EXPECT_EQ(three.get(i), high);
    EXPECT_EQ(three.get(100 + i), high);
    EXPECT_EQ(three.get(200 + i), low);
    EXPECT_LE(std::abs(x - high - low - three.get(300 + i)), std::ldexp(std::abs(x), -25));
  }
}

TEST(PackOfATransform, TransformsAndThenReorders) {
  const Tensor weight = drawn_tensor({3, 3, 3, 5});
  for (const Transform transform : {kWinograd2, kWinograd4}) {
    const int64_t points = transform == kWinograd2 ? 16 : 36;
    const PackSpec plain{{}, {}, transform}, blocks{{2, 0, 1}, {{2, 4}}, transform};
    const Tensor made = transformed(weight, transform);
    EXPECT_FALSE(plain.identity());
    EXPECT_EQ(values_of(pack(weight, plain)), values_of(made));
    const Tensor packed = pack(weight, blocks);
    EXPECT_EQ(packed.shape(), blocks.packed_shape(weight.shape()));
    EXPECT_EQ(packed.shape(), (Shape{2, points, 3, 4}));
    EXPECT_EQ(values_of(packed), values_of(pack(made, {{2, 0, 1}, {{2, 4}}})));
  }
}

TEST(PackOfATransform, ReadsBackFromJson) {
  for (const Transform transform : {kNone, kWinograd4, kBfloat16Parts2}) {
    const PackSpec spec{{2, 0, 1}, {{2, 16}}, transform};
    const Result<PackSpec> read = pack_spec_from_json(to_json(spec));
    ASSERT_TRUE(read.ok()) << read.error().message();
    EXPECT_EQ(*read, spec);
    EXPECT_EQ(to_json(spec).contains("transform"), transform != kNone);
  }
}

TEST(PackOfATransform, NamesWhatIsWrong) {
  const auto read = [](const char* transform) {
    return pack_spec_from_json(*parse_json(
        std::string(R"({"order": [0], "blocks": [], "transform": )") + transform + "}"));
  };
  EXPECT_ERROR(read("\"winograd-3x3\""), "pack transform: \"winograd-3x3\" is none");
  EXPECT_ERROR(read("\"none\""), "pack transform: \"none\" is none");
  EXPECT_ERROR(read("4"), "transform");
}

}  // namespace
}  // namespace pruner
