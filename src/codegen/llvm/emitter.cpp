// Statements: loops, guards and scopes.
#include "codegen/llvm/emitter.h"

#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>

#include "lower/rewrite.h"
#include "support/check.h"

namespace pruner {

using llvm::BasicBlock;
using llvm::PHINode;

namespace {

void for_each_store(const Stmt& s, const std::function<void(const Store&)>& fn) {
  walk(s, [&](const StmtNode& node) {
    if (const Store* store = std::get_if<Store>(&node.op)) fn(*store);
  });
}

// Returns for each buffer whether a statement in `s` stores to the buffer.
std::vector<bool> stored_buffers(const Stmt& s, const Program& program) {
  std::vector<bool> stored(program.buffers.size());
  for_each_store(s, [&](const Store& n) { stored[n.buffer.value] = true; });
  return stored;
}

}  // namespace

// Whether instructions add several products at once.
static bool has_dots(const Program& program) {
  bool found = false;
  walk(program.body, [&](const StmtNode& s) {
    const For* loop = std::get_if<For>(&s.op);
    found = found ||
            (loop != nullptr && (loop->kind == LoopKind::kDot || loop->kind == LoopKind::kMatrix));
  });
  return found;
}

Kernel::Kernel(const Program& p, llvm::Module& m, CpuInstructions instructions)
    : program(p),
      module(m),
      context(m.getContext()),
      isa(llvm::Triple(m.getTargetTriple()).isAArch64() ? Isa::kArm : Isa::kX86),
      makes_bfloat16(instructions.bfloat16 && has_dots(p)),
      math{.avx512 = instructions.avx512, .fma = instructions.fma},
      argument(p.buffers.size(), -1) {
  for (size_t i = 0; i < p.args.size(); ++i) {
    argument[p.args[i].value] = static_cast<int>(i);
  }
  for (const Buffer& buffer : p.buffers) {
    const bool box = !buffer.box_of.empty();
    const std::vector<int64_t>& rows = box ? buffer.box_of : buffer.shape;
    const std::vector<Expr>& extents = box ? buffer.box_extents : buffer.extents;
    std::vector<Expr> steps(rows.size(), Expr(1));
    for (size_t d = steps.size(); d-- > 1;)
      steps[d - 1] = steps[d] * (extents.empty() ? Expr(rows[d]) : extents[d]);
    strides.push_back(std::move(steps));
  }
  read_only = stored_buffers(p.body, p);
  read_only.flip();
  for_each_store(p.body, [&](const Store& n) {
    if (n.streaming && std::ranges::find(streams, n.buffer) == streams.end())
      streams.push_back(n.buffer);
  });
  mark_aliases();
}

// An output may lie exactly where an input of its size lies (the deployer's choice), and buffers of
// the workspace may follow each other in one place; nothing else overlaps.
void Kernel::mark_aliases() {
  const auto may_overlap = [&](const Buffer& a, const Buffer& b) {
    if (a.scope != b.scope) return false;
    if (a.scope == Scope::kWorkspace) {
      return a.workspace_offset < b.workspace_offset + b.bytes() &&
             b.workspace_offset < a.workspace_offset + a.bytes();
    }
    return !program.rewrites && a.output != b.output && a.bytes() == b.bytes();
  };
  llvm::MDBuilder metadata(context);
  llvm::MDNode* domain = metadata.createAnonymousAliasScopeDomain();
  std::vector<llvm::MDNode*> scopes;
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    scopes.push_back(metadata.createAnonymousAliasScope(domain));
    alias_scope.push_back(llvm::MDNode::get(context, {scopes.back()}));
  }
  for (const Buffer& buffer : program.buffers) {
    std::vector<llvm::Metadata*> apart;
    for (size_t i = 0; i < program.buffers.size(); ++i) {
      const Buffer& other = program.buffers[i];
      if (&other != &buffer && !may_overlap(buffer, other)) apart.push_back(scopes[i]);
    }
    no_alias.push_back(llvm::MDNode::get(context, apart));
  }
}

const std::vector<TensorId>& Kernel::stored_registers(const Stmt& body) {
  const auto [it, is_new] = stored_registers_.try_emplace(body.get());
  if (is_new) {
    const std::vector<bool> stored = stored_buffers(body, program);
    for (size_t i = 0; i < stored.size(); ++i) {
      if (!stored[i] || program.buffers[i].scope != pruner::Scope::kRegister) continue;
      it->second.push_back(TensorId{static_cast<int32_t>(i)});
    }
  }
  return it->second;
}

llvm::Constant* Kernel::splat_in_memory(llvm::Constant* value, int lanes) {
  llvm::Constant*& global = in_memory_[{value, lanes}];
  if (!global) {
    llvm::Constant* splat = llvm::ConstantVector::getSplat(
        llvm::ElementCount::getFixed(static_cast<unsigned>(lanes)), value);
    auto* variable = new llvm::GlobalVariable(
        module, splat->getType(), true, llvm::GlobalValue::PrivateLinkage, splat);
    variable->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
    variable->setAlignment(llvm::Align(64));
    global = variable;
  }
  return global;
}

void emit_kernel(const Program& program,
                 llvm::Module& module,
                 const std::string& symbol,
                 CpuInstructions instructions) {
  Kernel kernel(program, module, instructions);
  llvm::Type* pointer = llvm::PointerType::getUnqual(module.getContext());
  llvm::Type* nothing = llvm::Type::getVoidTy(module.getContext());
  // PrunerKernel: args, workspace, pool.
  auto* type = llvm::FunctionType::get(nothing, {pointer, pointer, pointer}, false);
  auto* function = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, symbol, module);
  Emitter(kernel, function).emit_entry();
}

Emitter::Emitter(Kernel& kernel, llvm::Function* function)
    : kernel_(kernel),
      program_(kernel.program),
      function_(function),
      b_(BasicBlock::Create(kernel.context, "", function)),
      vars_(program_.var_names.size()),
      ranges_(program_.var_names.size(), kUnbounded),
      registers_(program_.buffers.size()),
      locals_(program_.buffers.size()) {
  // A product and a sum may be fused; nothing else is reassociated or assumed.
  llvm::FastMathFlags contract;
  contract.setAllowContract();
  b_.setFastMathFlags(contract);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  // LLVM must not find memset() or the like in loops: objects refer to no outside symbol.
  function->addFnAttr("no-builtins");
  push_scope(nullptr);
}

void Emitter::emit_entry() {
  args_ = function_->getArg(0);
  workspace_ = function_->getArg(1);
  pool_ = function_->getArg(2);
  bind_symbols();
  if (kernel_.streams.empty()) {
    stmt(program_.body);
  } else {
    // Stores past the caches need aligned places, which a caller's buffers need not have.
    Value* bits = int64(0);
    for (const TensorId id : kernel_.streams)
      bits = b_.CreateOr(bits, b_.CreatePtrToInt(base(id), b_.getInt64Ty()));
    Value* aligned = b_.CreateIsNull(b_.CreateAnd(bits, int64(kStreamAlignment - 1)));
    for (const bool streaming : {true, false}) {
      streaming_ = streaming;
      branch(streaming ? aligned : b_.CreateNot(aligned), program_.body, [&] {
        stmt(program_.body);
        if (streaming) order_streamed_stores();
      });
    }
  }
  b_.CreateRetVoid();
}

// Their values stand behind the arguments.
void Emitter::bind_symbols() {
  if (program_.symbols.empty()) return;
  const auto place = static_cast<unsigned>(program_.args.size());
  Value* values =
      b_.CreateLoad(b_.getPtrTy(), b_.CreateConstInBoundsGEP1_32(b_.getPtrTy(), args_, place));
  for (size_t s = 0; s < program_.symbols.size(); ++s) {
    const VarId symbol = program_.symbols[s];
    Value* at = b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), values, s);
    bind(symbol, as_linear(b_.CreateLoad(b_.getInt64Ty(), at), 0), program_.ranges[symbol.value]);
  }
}

void Emitter::push_scope(llvm::Instruction* entry) {
  scopes_.push_back({entry, {}, {}, {}, {}, {}});
}

void Emitter::pop_scope() { scopes_.pop_back(); }

void Emitter::bind(VarId var, LaneIndex value, Range range) {
  vars_[var.value] = std::move(value);
  ranges_[var.value] = range;
}

void Emitter::stmt(const Stmt& s) {
  match(
      s->op,
      [&](const For& n) { for_loop(n); },
      [&](const Let& n) {
        bind(n.var, linear(n.value), bounds(n.value, ranges_));
        stmt(n.body);
      },
      [&](const Store& n) { store(n); },
      [&](const Prefetch& n) { prefetch(n); },
      [](const Barrier&) { CHECK(false) << "a GPU's barrier in a program for a CPU"; },
      [](const WarpStmt auto&) { CHECK(false) << "a warp's statement in a program for a CPU"; },
      [&](const If& n) { guard(n); },
      [&](const Allocate& n) { allocate(n); },
      [&](const Block& n) {
        for (const Stmt& part : n.statements) stmt(part);
      });
}

void Emitter::allocate(const Allocate& n) {
  const Buffer& buffer = program_[n.buffer];
  const auto i = static_cast<size_t>(n.buffer.value);
  if (buffer.scope == pruner::Scope::kRegister) {
    llvm::Type* type =
        buffer.rows > 1 ? tile_type(buffer) : at_width(value_type(buffer.dtype), buffer.lanes);
    registers_[i].assign(static_cast<size_t>(buffer.num_elements() / (buffer.lanes * buffer.rows)),
                         llvm::PoisonValue::get(type));
    stmt(n.body);
    registers_[i].clear();
    return;
  }
  // In the entry block: once a call, however often the statement runs.
  if (!locals_[i]) {
    llvm::IRBuilder<>::InsertPointGuard restore(b_);
    BasicBlock& entry = function_->getEntryBlock();
    b_.SetInsertPoint(&entry, entry.begin());
    auto* type = llvm::ArrayType::get(b_.getInt8Ty(), static_cast<uint64_t>(buffer.bytes()));
    auto* place = b_.CreateAlloca(type);
    place->setAlignment(llvm::Align(64));
    locals_[i] = place;
  }
  stmt(n.body);
}

void Emitter::for_loop(const For& n) {
  if ((n.kind == LoopKind::kSerial || n.kind == LoopKind::kUnroll) && copy_transposed(n)) return;
  switch (n.kind) {
    case LoopKind::kUnroll: return unrolled(n);
    case LoopKind::kVectorize: return vectorized(n);
    case LoopKind::kDot: return dot(n);
    case LoopKind::kMatrix: return matrix(n);
    case LoopKind::kParallel: return parallel(n);
    case LoopKind::kBlock:
    case LoopKind::kThread: CHECK(false) << "a GPU's loop in a program for a CPU";
    case LoopKind::kSerial: break;
  }
  const LaneIndex extent = linear(n.extent);
  const Range range = bounds(n.extent, ranges_);
  if (extent.is_constant() && extent.constant <= 1) {
    bind(n.var, {}, {0, 0});
    if (extent.constant == 1) stmt(n.body);
    return;
  }
  ranges_[n.var.value] = {0, std::max<int64_t>(range.second - 1, 0)};
  loop(n.var, int64(0), value(extent), range.first < 1, n.body);
}

void Emitter::unrolled(const For& n) {
  const LaneIndex extent = linear(n.extent);
  CHECK(extent.is_constant()) << "unrolled loop of unknown extent";
  for (int64_t i = 0; i < extent.constant; ++i) {
    bind(n.var, LaneIndex{i, 0, {}}, {i, i});
    stmt(n.body);
  }
}

void Emitter::vectorized(const For& n) {
  const LaneIndex extent = linear(n.extent);
  const auto lanes = [&] {
    lanes_ = n.lanes;
    // Whole vectors need no mask.
    const bool full = n.lanes == 1 || extent == LaneIndex{n.lanes, 0, {}};
    active_ = full ? nullptr : lanes_below(extent);
    bind(n.var, LaneIndex{0, n.lanes > 1 ? 1 : 0, {}}, {0, n.lanes - 1});
    stmt(n.body);
    active_ = nullptr;
    lanes_ = 1;
  };
  if (bounds(n.extent, ranges_).first >= 1) return lanes();
  branch(b_.CreateICmpSGT(value(extent), int64(0)), n.body, lanes);
}

void Emitter::loop(VarId var, Value* begin, Value* end, bool may_be_empty, const Stmt& body) {
  if (!may_be_empty) return rotated_loop(var, begin, end, body);
  branch(b_.CreateICmpSLT(begin, end), body, [&] { rotated_loop(var, begin, end, body); });
}

// The test is at the bottom, so that what is invariant can be hoisted as it stands.
void Emitter::rotated_loop(VarId var, Value* begin, Value* end, const Stmt& body) {
  counted_loop(begin, end, body, [&](const LaneIndex& counter) {
    vars_[var.value] = counter;
    stmt(body);
  });
}

// `parts` has the stores to registers of what `body` emits.
void Emitter::counted_loop(Value* begin,
                           Value* end,
                           const Stmt& parts,
                           const std::function<void(const LaneIndex&)>& body) {
  BasicBlock* before = b_.GetInsertBlock();
  BasicBlock* block = BasicBlock::Create(kernel_.context, "", function_);
  push_scope(b_.CreateBr(block));
  b_.SetInsertPoint(block);
  PHINode* counter = b_.CreatePHI(b_.getInt64Ty(), 2);
  counter->addIncoming(begin, before);

  struct Carried {
    Value** slot;
    PHINode* phi;
  };
  std::vector<Carried> carried;
  for (const TensorId id : kernel_.stored_registers(parts)) {
    for (Value*& slot : registers_[id.value]) {
      PHINode* phi = b_.CreatePHI(slot->getType(), 2);
      phi->addIncoming(slot, before);
      carried.push_back({&slot, phi});
      slot = phi;
    }
  }
  body(as_linear(counter, depth()));

  Value* next = b_.CreateAdd(counter, int64(1), "", true, true);
  BasicBlock* latch = b_.GetInsertBlock();
  BasicBlock* after = BasicBlock::Create(kernel_.context, "", function_);
  b_.CreateCondBr(b_.CreateICmpSLT(next, end), block, after);
  counter->addIncoming(next, latch);
  for (const Carried& c : carried) c.phi->addIncoming(*c.slot, latch);
  pop_scope();
  b_.SetInsertPoint(after);
}

// Runs `then` if the condition holds, and merges the registers that `parts` stores to.
void Emitter::branch(Value* condition, const Stmt& parts, const std::function<void()>& then) {
  struct Merged {
    Value** slot;
    Value* before;
  };
  std::vector<Merged> merged;
  for (const TensorId id : kernel_.stored_registers(parts)) {
    for (Value*& slot : registers_[id.value]) merged.push_back({&slot, slot});
  }
  BasicBlock* before = b_.GetInsertBlock();
  BasicBlock* block = BasicBlock::Create(kernel_.context, "", function_);
  BasicBlock* after = BasicBlock::Create(kernel_.context, "", function_);
  push_scope(b_.CreateCondBr(condition, block, after));
  b_.SetInsertPoint(block);
  then();
  BasicBlock* last = b_.GetInsertBlock();
  b_.CreateBr(after);
  pop_scope();
  b_.SetInsertPoint(after);
  for (const Merged& m : merged) {
    if (*m.slot == m.before) continue;
    PHINode* phi = b_.CreatePHI(m.before->getType(), 2);
    phi->addIncoming(m.before, before);
    phi->addIncoming(*m.slot, last);
    *m.slot = phi;
  }
}

// On x86, other threads see streamed stores only after a fence.
void Emitter::order_streamed_stores() {
  if (!llvm::Triple(kernel_.module.getTargetTriple()).isX86()) return;
  b_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
}

void Emitter::guard(const If& n) {
  Value* condition = expr(n.condition);
  if (auto* known = llvm::dyn_cast<llvm::ConstantInt>(condition)) {
    if (known->isOne()) stmt(n.then);
  } else if (condition->getType()->isVectorTy()) {
    const Predicate outer = predicate_;
    predicate_.lanes = logical_and(predicate_.lanes, condition);
    stmt(n.then);
    predicate_ = outer;
  } else {
    branch(condition, n.then, [&] { stmt(n.then); });
  }
}

// Whether a parallel loop's body may need an atom. A vector is int64 data of a straight-line vector
// loop before the parallel one; the body reads such data from memory, and no slot could hold it.
static bool is_captured(const llvm::Value* atom) { return !atom->getType()->isVectorTy(); }

// The loop becomes a function over [begin, end) that the pool calls; its closure holds the kernel's
// arguments and the index values in scope.
void Emitter::parallel(const For& n) {
  const LaneIndex extent = linear(n.extent);
  llvm::Type* pointer = b_.getPtrTy();
  llvm::Type* i64 = b_.getInt64Ty();
  // PrunerBody: closure, begin, end.
  auto* type = llvm::FunctionType::get(b_.getVoidTy(), {pointer, i64, i64}, false);
  auto* body = llvm::Function::Create(
      type, llvm::GlobalValue::InternalLinkage, function_->getName() + ".body", kernel_.module);
  Emitter(kernel_, body).become_body_of(*this, n);

  std::vector<Value*> captured = {args_, workspace_};
  for (const Scope& scope : scopes_) {
    std::ranges::copy_if(scope.atoms, std::back_inserter(captured), is_captured);
  }
  Value* closure;
  {
    llvm::IRBuilder<>::InsertPointGuard restore(b_);
    BasicBlock& entry = function_->getEntryBlock();
    b_.SetInsertPoint(&entry, entry.begin());
    closure = b_.CreateAlloca(llvm::ArrayType::get(i64, captured.size()));
  }
  for (size_t i = 0; i < captured.size(); ++i) {
    b_.CreateStore(captured[i], b_.CreateConstInBoundsGEP1_64(i64, closure, i));
  }
  // PrunerPool::parallel_for, which is the struct's first member.
  auto* pool_type =
      llvm::FunctionType::get(b_.getVoidTy(), {pointer, pointer, pointer, i64}, false);
  b_.CreateCall(pool_type, b_.CreateLoad(pointer, pool_), {pool_, body, closure, value(extent)});
}

// Slots of the closure are 8 bytes: args, workspace, then the parent's captured atoms in their
// order. An atom gets a number of this function's outermost scope.
void Emitter::become_body_of(const Emitter& parent, const For& n) {
  Value* closure = function_->getArg(0);
  int slot = 0;
  const auto next = [&](llvm::Type* type) {
    return b_.CreateLoad(type, b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), closure, slot++));
  };
  args_ = next(b_.getPtrTy());
  workspace_ = next(b_.getPtrTy());
  vars_ = parent.vars_;
  for (size_t level = 0; level < parent.scopes_.size(); ++level) {
    for (size_t i = 0; i < parent.scopes_[level].atoms.size(); ++i) {
      if (!is_captured(parent.scopes_[level].atoms[i])) continue;
      const LaneIndex here = as_linear(next(parent.scopes_[level].atoms[i]->getType()), 0);
      const int there = static_cast<int>(level) * kAtoms + static_cast<int>(i);
      for (LaneIndex& var : vars_) {
        for (auto& term : var.terms)
          term.first = term.first == there ? here.terms[0].first : term.first;
      }
    }
  }
  ranges_ = parent.ranges_;
  streaming_ = parent.streaming_;
  ranges_[n.var.value] = {0, bounds(n.extent, ranges_).second - 1};
  loop(n.var, function_->getArg(1), function_->getArg(2), true, n.body);
  if (streaming_) order_streamed_stores();
  b_.CreateRetVoid();
}

}  // namespace pruner
