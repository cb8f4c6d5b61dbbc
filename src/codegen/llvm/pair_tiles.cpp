// Tiles of two rows, whose instructions (Arm's smmla, bfmmla) add to two lanes of both: a register
// has the first row's two sums, then the second row's, and a tile as many as it has pairs of lanes.
#include <llvm/Analysis/VectorUtils.h>

#include "codegen/llvm/emitter.h"
#include "space/dot.h"
#include "support/check.h"

namespace pruner {

static int width(const llvm::Value* vector) {
  const auto* type = llvm::cast<llvm::FixedVectorType>(vector->getType());
  return static_cast<int>(type->getNumElements());
}

llvm::Value* Emitter::load_pairs(TensorId buffer, const TilePlace& from, int lanes) {
  const DType dtype = program_[buffer].dtype;
  const llvm::Align align(static_cast<uint64_t>(dtype_bytes(dtype)));
  const auto load_row = [&](int64_t row) {
    LaneIndex at = from.first;
    at.constant += row * from.row;
    return annotate(
        b_.CreateAlignedLoad(at_width(memory_type(dtype), lanes), address(buffer, at), align),
        buffer);
  };
  Value *first = load_row(0), *second = load_row(1);
  llvm::SmallVector<int, 16> order;
  for (int lane = 0; lane < lanes; lane += 2)
    order.append({lane, lane + 1, lanes + lane, lanes + lane + 1});
  return b_.CreateShuffleVector(first, second, order);
}

void Emitter::store_pairs(TensorId buffer, const TilePlace& to, Value* pairs) {
  const llvm::Align align(static_cast<uint64_t>(dtype_bytes(program_[buffer].dtype)));
  for (int row = 0; row < kPairRows; ++row) {
    llvm::SmallVector<int, 16> order;
    for (int sum = 2 * row; sum < width(pairs); sum += 4) order.append({sum, sum + 1});
    LaneIndex at = to.first;
    at.constant += row * to.row;
    Value* sums = b_.CreateShuffleVector(pairs, order);
    annotate(b_.CreateAlignedStore(sums, address(buffer, at), align), buffer);
  }
}

// The terms of two rows or lanes, `stride` elements apart, as one vector.
llvm::Value* Emitter::terms_of_pair(TensorId buffer,
                                    const LaneIndex& first,
                                    int64_t stride,
                                    int64_t terms) {
  const auto bytes = static_cast<uint64_t>(dtype_bytes(program_[buffer].dtype));
  const llvm::Align align(bytes);
  const auto size = static_cast<unsigned>(8 * bytes) * static_cast<unsigned>(terms);
  llvm::Type* type = at_width(b_.getIntNTy(size), kPairRows);
  if (stride == terms)
    return annotate(b_.CreateAlignedLoad(type, address(buffer, first), align), buffer);
  Value* both = llvm::PoisonValue::get(type);
  for (int i = 0; i < kPairRows; ++i) {
    LaneIndex at = first;
    at.constant += i * stride;
    Value* one =
        annotate(b_.CreateAlignedLoad(b_.getIntNTy(size), address(buffer, at), align), buffer);
    both = b_.CreateInsertElement(both, one, static_cast<uint64_t>(i));
  }
  return both;
}

llvm::Value* Emitter::added_to_pairs(const DotInstruction& dot,
                                     Value* pairs,
                                     const std::pair<TensorId, TilePlace>& rows,
                                     const std::pair<TensorId, TilePlace>& lanes) {
  constexpr int kSums = 2 * kPairRows;
  llvm::Function* function = dot_function(dot, kSums, kPairRows * dot.terms);
  CHECK(function != nullptr) << "LLVM has no " << dot.name;
  llvm::Type* type = function->getFunctionType()->getParamType(1);
  Value* left = b_.CreateBitCast(
      terms_of_pair(rows.first, rows.second.first, rows.second.row, dot.terms), type);
  llvm::SmallVector<Value*, 4> parts;
  for (int sum = 0; sum < width(pairs); sum += kSums) {
    LaneIndex at = lanes.second.first;
    at.constant += sum / kPairRows * dot.terms;
    Value* right = b_.CreateBitCast(terms_of_pair(lanes.first, at, dot.terms, dot.terms), type);
    Value* before =
        b_.CreateShuffleVector(pairs, llvm::SmallVector<int, 4>{sum, sum + 1, sum + 2, sum + 3});
    parts.push_back(b_.CreateCall(function, {before, left, right}));
  }
  return llvm::concatenateVectors(b_, parts);
}

}  // namespace pruner
