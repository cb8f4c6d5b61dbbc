// Buffers: addresses, loads, stores, registers and horizontal reductions.
#include <llvm/ADT/bit.h>

#include <numeric>

#include "codegen/llvm/emitter.h"
#include "support/check.h"
#include "tensor/scalar_ops.h"

namespace pruner {

using llvm::Align;

llvm::Value* Emitter::base(TensorId id) {
  const Buffer& buffer = program_[id];
  switch (buffer.scope) {
    case pruner::Scope::kArgument: {
      const auto place = static_cast<unsigned>(kernel_.argument[id.value]);
      return b_.CreateLoad(b_.getPtrTy(),
                           b_.CreateConstInBoundsGEP1_32(b_.getPtrTy(), args_, place));
    }
    case pruner::Scope::kWorkspace:
      return b_.CreateConstInBoundsGEP1_64(
          b_.getInt8Ty(), workspace_, static_cast<uint64_t>(buffer.workspace_offset));
    default: return locals_[id.value];
  }
}

// Each prefix of the terms is added where its last atom is defined, just before the loops in it.
llvm::Value* Emitter::pointer(TensorId buffer, const LaneIndex::Terms& terms) {
  const int level = terms.empty() ? 0 : terms.back().first / kAtoms;
  const auto key = std::pair(static_cast<int>(buffer.value), terms);
  auto& known = scopes_[level].pointers;
  if (const auto it = known.find(key); it != known.end()) return it->second;
  if (terms.empty()) return known[key] = at_depth(level, [&] { return base(buffer); });
  const auto [id, coefficient] = terms.back();
  Value* prefix = pointer(buffer, LaneIndex::Terms(terms.begin(), terms.end() - 1));
  return known[key] = at_depth(level, [&] {
           Value* step = int64(coefficient * dtype_bytes(program_[buffer].dtype));
           Value* offset = b_.CreateMul(atom(id), step, "", false, true);
           Value* sum = b_.CreateGEP(b_.getInt8Ty(), prefix, offset);
           // LLVM's loop strength reduction sees constants beside loops' variables, but not beside
           // a quotient or a minimum: it would keep a pointer for each row of a tile.
           const bool counts = llvm::isa<llvm::PHINode>(atom(id));
           return counts ? sum : b_.CreateFreeze(sum);
         });
}

// The uniform part of a place; lanes start here.
llvm::Value* Emitter::address(TensorId buffer, const LaneIndex& place) {
  Value* start = pointer(buffer, place.terms);
  const int64_t bytes = place.constant * dtype_bytes(program_[buffer].dtype);
  return bytes == 0 ? start
                    : b_.CreateConstGEP1_64(b_.getInt8Ty(), start, static_cast<uint64_t>(bytes));
}

// A place differs between lanes by their number or by an atom that is a vector.
bool Emitter::varies_by_lane(const LaneIndex& place) const {
  for (const auto& [id, coefficient] : place.terms) {
    if (atom(id)->getType()->isVectorTy()) return true;
  }
  return place.counts_lanes();
}

llvm::Value* Emitter::mask() { return logical_and(active_, predicate_.lanes); }

// Whether any lane is under the predicate: then a uniform place is a valid one.
llvm::Value* Emitter::any_active() {
  if (!predicate_.lanes) return predicate_.uniform;
  return logical_and(predicate_.uniform, b_.CreateOrReduce(mask()));
}

llvm::Value*& Emitter::register_slot(TensorId id, const LaneIndex& place) {
  const Buffer& buffer = program_[id];
  const bool vector = buffer.lanes > 1;
  CHECK(place.terms.empty() && place.steps.empty() && place.lane == (vector ? 1 : 0) &&
        place.constant % buffer.lanes == 0)
      << "register buffer " << buffer.name << " is not accessed by constants";
  CHECK(!vector || buffer.lanes == lanes_) << buffer.name << " is accessed by another vector width";
  auto& slots = registers_[id.value];
  const auto slot = static_cast<size_t>(place.constant / buffer.lanes);
  CHECK(slot < slots.size()) << "register buffer " << buffer.name << " is too small";
  return slots[slot];
}

// `otherwise`: the value to give where the predicate does not hold, if that is wanted.
llvm::Value* Emitter::load(const Load& n, llvm::Constant* otherwise) {
  const Buffer& buffer = program_[n.tensor];
  const LaneIndex place = flatten(n.tensor, n.indices);
  if (buffer.scope == pruner::Scope::kRegister) return register_slot(n.tensor, place);
  // A buffer that no statement stores to can be loaded once and used in all inner scopes.
  const bool keep = kernel_.read_only[n.tensor.value] && !predicate_.uniform && !predicate_.lanes;
  if (!keep) return load_place(n.tensor, place, otherwise);
  const auto key = std::tuple(n.tensor.value, lanes_, active_, place);
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (const auto it = scope->loads.find(key); it != scope->loads.end()) return it->second;
  }
  return scopes_.back().loads[key] = load_place(n.tensor, place, otherwise);
}

// Under a uniform predicate the address, not the value, is chosen: constants in memory stand in for
// what must not be read.
llvm::Value* Emitter::load_place(TensorId id, const LaneIndex& place, llvm::Constant* otherwise) {
  const DType dtype = program_[id].dtype;
  llvm::Type* scalar = memory_type(dtype);
  const bool varies = varies_by_lane(place);
  LaneIndex uniform = place;
  uniform.lane = 0;
  if (varies && (place.lane != 1 || varies_by_lane(uniform))) return load_scattered(id, place);

  const int width = varies ? lanes_ : 1;
  Value* from = address(id, place);
  if (Value* condition = varies ? predicate_.uniform : any_active()) {
    if (!otherwise) otherwise = llvm::Constant::getNullValue(scalar);
    from = b_.CreateSelect(condition, from, kernel_.splat_in_memory(otherwise, width));
  }
  llvm::Type* type = at_width(scalar, width);
  const Align align(static_cast<uint64_t>(dtype_bytes(dtype)));
  Value* active = varies ? mask() : nullptr;
  if (active) {
    return from_memory(masked_load(id, type, from, active), dtype);
  }
  return from_memory(annotate(b_.CreateAlignedLoad(type, from, align), id), dtype);
}

// Whether a constant mask excludes every lane.
static bool is_none(const llvm::Value* mask) {
  const auto* known = llvm::dyn_cast<llvm::Constant>(mask);
  return known != nullptr && known->isNullValue();
}

// The given lanes of a mask. Conjunctions are followed, so that lanes that a constant excludes are
// a constant.
llvm::Value* Emitter::part_of_mask(Value* mask, llvm::ArrayRef<int> lanes) {
  const auto* both = llvm::dyn_cast<llvm::BinaryOperator>(mask);
  if (both == nullptr || both->getOpcode() != llvm::Instruction::And)
    return b_.CreateShuffleVector(mask, lanes);
  Value* a = part_of_mask(both->getOperand(0), lanes);
  Value* b = part_of_mask(both->getOperand(1), lanes);
  return is_none(a) ? a : is_none(b) ? b : b_.CreateAnd(a, b);
}

// The elements at `from` whose lanes are in the mask, and zeros for the others. LLVM 19 divides a
// vector that is longer than a register of AVX2. If the mask excludes all lanes of a part and only
// the signs of the part's elements are read, LLVM then loads the part without the mask. So a longer
// vector is divided here, and such a part is not loaded.
llvm::Value* Emitter::masked_load(TensorId id, llvm::Type* type, Value* from, Value* mask) {
  const auto lanes = static_cast<int>(llvm::cast<llvm::FixedVectorType>(type)->getNumElements());
  const auto bits = static_cast<int>(type->getScalarSizeInBits());
  const int longest = kernel_.math.avx512 ? 512 : 256;
  if (is_none(mask)) return llvm::Constant::getNullValue(type);
  if (lanes * bits <= longest || lanes % 2 != 0) {
    const Align align(static_cast<uint64_t>(dtype_bytes(program_[id].dtype)));
    return annotate(
        b_.CreateMaskedLoad(type, from, align, mask, llvm::Constant::getNullValue(type)), id);
  }
  const int half = lanes / 2;
  llvm::SmallVector<int, 16> low, high, all;
  for (int i = 0; i < half; ++i) low.push_back(i), high.push_back(half + i);
  for (int i = 0; i < lanes; ++i) all.push_back(i);
  llvm::Type* part = at_width(type->getScalarType(), half);
  Value* second =
      b_.CreateConstGEP1_64(b_.getInt8Ty(), from, static_cast<uint64_t>(half * bits / 8));
  Value* lower = masked_load(id, part, from, part_of_mask(mask, low));
  Value* upper = masked_load(id, part, second, part_of_mask(mask, high));
  return b_.CreateShuffleVector(lower, upper, all);
}

// A vector of addresses: the uniform part once, the rest by lane.
llvm::Value* Emitter::scattered_pointers(TensorId id, const LaneIndex& place) {
  const int64_t bytes = dtype_bytes(program_[id].dtype);
  LaneIndex uniform = place, varying;
  uniform.terms.clear();
  uniform.lane = 0;
  uniform.steps.clear();
  varying.lane = place.lane * bytes;
  for (const auto& [divisor, coefficient] : place.steps)
    varying.steps.push_back({divisor, coefficient * bytes});
  for (const auto& [id, coefficient] : place.terms) {
    if (atom(id)->getType()->isVectorTy()) {
      varying.terms.push_back({id, coefficient * bytes});
    } else {
      uniform.terms.push_back({id, coefficient});
    }
  }
  return b_.CreateGEP(b_.getInt8Ty(), address(id, uniform), value(varying));
}

// The elements that lanes read, if one vector holds all of these elements.
struct Emitter::Run {
  int64_t begin;  // distance from the uniform part of the place to the first element
  int64_t block;  // number of neighbours that all lie in the buffer if one of them does
  int elements;
};

// Blocks divide the last dimension and begin at its multiples.
std::optional<Emitter::Run> Emitter::run_of(TensorId id, const LaneIndex& place) const {
  if (place.steps.empty() || predicate_.uniform || predicate_.lanes) return std::nullopt;
  const Buffer& buffer = program_[id];
  int64_t low = 0, high = 0;
  const bool whole = buffer.box_of.empty() && buffer.extents.empty();
  int64_t block = whole ? std::gcd<int64_t>(lanes_, buffer.shape.back()) : 1;
  for (const auto& [id, coefficient] : place.terms) {
    if (atom(id)->getType()->isVectorTy()) return std::nullopt;
    block = std::gcd(block, coefficient);
  }
  for (int64_t i = 0; i < lanes_; ++i) {
    low = std::min(low, place.of_lane(i));
    high = std::max(high, place.of_lane(i));
  }
  const int64_t first = place.constant + low, last = place.constant + high;
  for (; block >= 1; block /= 2) {
    const int64_t begin = floor_div(first, block) * block;
    const int64_t elements = (floor_div(last, block) + 1) * block - begin;
    if (elements <= lanes_) return Run{begin, block, static_cast<int>(elements)};
  }
  return std::nullopt;
}

// The run is loaded once, and its elements are spread over the lanes.
llvm::Value* Emitter::load_spread(TensorId id, const LaneIndex& place, const Run& run) {
  const DType dtype = program_[id].dtype;
  const int width = static_cast<int>(llvm::bit_ceil(static_cast<unsigned>(run.elements)));
  llvm::Type* type = at_width(memory_type(dtype), width);
  const Align align(static_cast<uint64_t>(dtype_bytes(dtype)));
  // `element` is the element that each lane reads; `reader` is, for each element, the first lane
  // that reads an element of the same block.
  const int nobody = lanes_;
  llvm::SmallVector<int, 16> element, reader(static_cast<size_t>(width), nobody);
  for (int lane = 0; lane < lanes_; ++lane) {
    const int64_t at = place.constant + place.of_lane(lane) - run.begin;
    element.push_back(static_cast<int>(at));
    for (int64_t e = at / run.block * run.block; e < (at / run.block + 1) * run.block; ++e) {
      int& first = reader[static_cast<size_t>(e)];
      first = std::min(first, lane);
    }
  }
  LaneIndex uniform{run.begin, 0, place.terms};
  Value* from = address(id, uniform);
  llvm::Value* loaded;
  if (active_ || run.elements < width) {
    llvm::Type* lanes = at_width(b_.getInt1Ty(), lanes_);
    Value* active = active_ ? active_ : llvm::Constant::getAllOnesValue(lanes);
    Value* read = b_.CreateShuffleVector(active, llvm::Constant::getNullValue(lanes), reader);
    loaded = masked_load(id, type, from, read);
  } else {
    loaded = annotate(b_.CreateAlignedLoad(type, from, align), id);
  }
  return spread(from_memory(loaded, dtype), element);
}

// Lane i gets element[i] of `run`. Vectors are made of parts of 16 bytes: within these elements
// move by one instruction, whatever their order, between them by one that many such orders share.
llvm::Value* Emitter::spread(Value* run, llvm::ArrayRef<int> element) {
  const int part = 128 / static_cast<int>(run->getType()->getScalarSizeInBits());
  llvm::SmallVector<int, 16> between, within;
  for (size_t lane = 0; lane < element.size(); ++lane) {
    const int own = static_cast<int>(lane) % part, first = static_cast<int>(lane) - own;
    const int from = element[static_cast<size_t>(first)] / part;
    if (element[lane] / part != from) return b_.CreateShuffleVector(run, element);
    between.push_back(from * part + own);
    within.push_back(first + element[lane] % part);
  }
  return b_.CreateShuffleVector(b_.CreateShuffleVector(run, between), within);
}

// Lanes that go backwards or over every other element: vectors that overlap in one element reach
// from the first to the last. An inactive lane reads nothing.
llvm::Value* Emitter::load_strided(TensorId id,
                                   const LaneIndex& first,
                                   int64_t step,
                                   Value* active) {
  llvm::Type* type = at_width(memory_type(program_[id].dtype), lanes_);
  const Align align(static_cast<uint64_t>(dtype_bytes(program_[id].dtype)));
  const int nobody = lanes_;
  const auto vector = [&](int64_t begin) -> Value* {
    LaneIndex at = first;
    at.constant += begin;
    Value* from = address(id, at);
    if (!active) return annotate(b_.CreateAlignedLoad(type, from, align), id);
    llvm::SmallVector<int, 16> reader(static_cast<size_t>(lanes_), nobody);
    for (int lane = 0; lane < lanes_; ++lane) {
      const int64_t element = step * lane - begin;
      if (element >= 0 && element < lanes_) reader[static_cast<size_t>(element)] = lane;
    }
    Value* read =
        b_.CreateShuffleVector(active, llvm::Constant::getNullValue(active->getType()), reader);
    return masked_load(id, type, from, read);
  };
  llvm::SmallVector<int, 16> order;
  for (int i = 0; i < lanes_; ++i) {
    order.push_back(step == -1 ? lanes_ - 1 - i : 2 * i < lanes_ ? 2 * i : 2 * i + 1);
  }
  if (step == -1) return b_.CreateShuffleVector(vector(1 - lanes_), order);
  Value* low = vector(0);
  return b_.CreateShuffleVector(low, vector(lanes_ - 1), order);
}

// A strided place is read by vectors or, where its active lanes are known, lane by lane, anything
// else by a gather.
llvm::Value* Emitter::load_scattered(TensorId id, const LaneIndex& place) {
  if (const std::optional<Run> run = run_of(id, place)) return load_spread(id, place, *run);
  const DType dtype = program_[id].dtype;
  llvm::Type* scalar = memory_type(dtype);
  llvm::Type* type = at_width(scalar, lanes_);
  const Align align(static_cast<uint64_t>(dtype_bytes(dtype)));
  LaneIndex uniform = place;
  uniform.lane = 0;
  const bool strided = !varies_by_lane(uniform);
  Value* active = mask();
  if (predicate_.uniform) active = logical_and(active, widened(predicate_.uniform));
  if (strided && (place.lane == -1 || place.lane == 2))
    return from_memory(load_strided(id, uniform, place.lane, active), dtype);
  const auto* known = llvm::dyn_cast_or_null<llvm::Constant>(active);
  if ((active && !known) || !strided) {
    Value* pointers = scattered_pointers(id, place);
    if (!active) active = llvm::Constant::getAllOnesValue(at_width(b_.getInt1Ty(), lanes_));
    Value* value =
        b_.CreateMaskedGather(type, pointers, align, active, llvm::Constant::getNullValue(type));
    return from_memory(annotate(llvm::cast<llvm::CallInst>(value), id), dtype);
  }
  Value* result = known ? llvm::Constant::getNullValue(type) : llvm::PoisonValue::get(type);
  for (int i = 0; i < lanes_; ++i) {
    if (known && known->getAggregateElement(static_cast<unsigned>(i))->isNullValue()) continue;
    LaneIndex at = uniform;
    at.constant += place.lane * i;
    Value* element = annotate(b_.CreateAlignedLoad(scalar, address(id, at), align), id);
    result = b_.CreateInsertElement(result, element, static_cast<uint64_t>(i));
  }
  return from_memory(result, dtype);
}

void Emitter::prefetch(const Prefetch& n) {
  // llvm.prefetch: for reading, of a locality (x86: 3 is prefetcht0, 2 prefetcht1), of data.
  constexpr uint32_t kRead = 0, kNearest = 4, kData = 1;
  b_.CreateIntrinsic(llvm::Intrinsic::prefetch,
                     {b_.getPtrTy()},
                     {address(n.buffer, flatten(n.buffer, n.indices)),
                      b_.getInt32(kRead),
                      b_.getInt32(kNearest - static_cast<uint32_t>(n.level)),
                      b_.getInt32(kData)});
}

void Emitter::store(const Store& n) {
  const LaneIndex place = flatten(n.buffer, n.indices);
  const bool in_register = program_[n.buffer].scope == pruner::Scope::kRegister;
  if (lanes_ > 1 && !varies_by_lane(place)) return fold_lanes(n, place);
  if (in_register) return store_register(n, place);
  store_place(n.buffer, place, value_to_store(n), n.streaming && streaming_);
}

// A value that is cast to a narrow float is rounded once, when it goes to memory.
llvm::Value* Emitter::value_to_store(const Store& n) {
  const Cast* cast = as<Cast>(n.value);
  const DType dtype = program_[n.buffer].dtype;
  const bool rounds = cast != nullptr && !cast->of_bits && n.value->dtype == dtype &&
                      is_narrow_float(dtype) && cast->value->dtype != dtype;
  return rounds ? to_single(expr(cast->value), cast->value->dtype) : expr(n.value);
}

// Inactive lanes beyond the extent may hold anything in a register; those under a guard keep what
// was there.
void Emitter::store_register(const Store& n, const LaneIndex& place) {
  Value* value = expr(n.value);
  Value*& slot = register_slot(n.buffer, place);
  if (slot->getType()->isVectorTy()) value = widened(value);
  slot = predicate_.lanes ? b_.CreateSelect(predicate_.lanes, value, slot) : value;
}

void Emitter::store_place(TensorId id, const LaneIndex& place, Value* value, bool streaming) {
  const DType dtype = program_[id].dtype;
  const Align align(static_cast<uint64_t>(dtype_bytes(dtype)));
  scopes_.back().tiles.clear();
  value = to_memory(value, dtype);
  if (!varies_by_lane(place)) {
    annotate(b_.CreateAlignedStore(value, address(id, place), align), id);
    return;
  }
  value = widened(value);
  LaneIndex uniform = place;
  uniform.lane = 0;
  Value* active = mask();
  if (place.lane == 1 && !varies_by_lane(uniform)) {
    Value* to = address(id, uniform);
    if (active) {
      annotate(b_.CreateMaskedStore(value, to, align, active), id);
    } else {
      llvm::StoreInst* stored = annotate(b_.CreateAlignedStore(value, to, align), id);
      const int64_t bytes = lanes_ * dtype_bytes(dtype);
      // x86's non-temporal stores of vectors need places that are multiples of the vector's size.
      bool whole = uniform.constant % lanes_ == 0;
      for (const auto& [atom, coefficient] : uniform.terms)
        whole = whole && coefficient % lanes_ == 0;
      if (streaming && whole && bytes <= kStreamAlignment) {
        stored->setAlignment(Align(static_cast<uint64_t>(bytes)));
        auto* one = llvm::ConstantAsMetadata::get(b_.getInt32(1));
        stored->setMetadata(llvm::LLVMContext::MD_nontemporal,
                            llvm::MDNode::get(kernel_.context, {one}));
      }
    }
  } else if (active || varies_by_lane(uniform)) {
    annotate(b_.CreateMaskedScatter(value, scattered_pointers(id, place), align, active), id);
  } else {
    for (int i = 0; i < lanes_; ++i) {
      LaneIndex at = uniform;
      at.constant += place.lane * i;
      Value* element = b_.CreateExtractElement(value, static_cast<uint64_t>(i));
      annotate(b_.CreateAlignedStore(element, address(id, at), align), id);
    }
  }
}

// x = combine(x, value) of a place that is the same for all lanes: the active ones are folded.
void Emitter::fold_lanes(const Store& n, const LaneIndex& place) {
  const Binary* update = as<Binary>(n.value);
  const auto is_place = [&](const Expr& e) {
    const Load* load = as<Load>(e);
    return load && load->tensor == n.buffer &&
           std::equal(
               load->indices.begin(), load->indices.end(), n.indices.begin(), structural_equal);
  };
  CHECK(update && (is_place(update->a) || is_place(update->b)))
      << "a store to one place of " << program_[n.buffer].name << " by all lanes is no reduction";
  const Expr& part = is_place(update->a) ? update->b : update->a;
  Value* lanes = widened(expr(part));
  if (Value* active = mask()) {
    const Expr neutral = combiner_identity(combiner_with(update->op), part->dtype);
    lanes = b_.CreateSelect(active, lanes, widened(expr(neutral)));
  }
  const Predicate outer = std::exchange(predicate_, {});
  const bool in_register = program_[n.buffer].scope == pruner::Scope::kRegister;
  Value* old = in_register ? register_slot(n.buffer, place) : load_place(n.buffer, place, nullptr);
  Value* sum = arithmetic(update->op, part->dtype, old, fold(update->op, part->dtype, lanes));
  if (in_register) {
    register_slot(n.buffer, place) = sum;
  } else {
    store_place(n.buffer, place, sum);
  }
  predicate_ = outer;
}

}  // namespace pruner
