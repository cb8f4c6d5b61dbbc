// Builds programs with little ink, for the tests of lowering and code generation:
//   b.serial(8, [&](Expr i) { return b.store(y, {i}, b.read(x, {i}) * float_imm(2)); })
#pragma once

#include <functional>

#include "lower/program.h"

namespace pruner {

class ProgramBuilder {
 public:
  explicit ProgramBuilder(std::string name) { program.name = std::move(name); }

  TensorId input(std::string name, std::vector<int64_t> shape, DType dtype = DType::kFloat32);
  TensorId output(std::string name, std::vector<int64_t> shape, DType dtype = DType::kFloat32);
  TensorId registers(std::string name,
                     std::vector<int64_t> shape,
                     int lanes,
                     DType dtype = DType::kFloat32);
  TensorId local(std::string name, std::vector<int64_t> shape, DType dtype = DType::kFloat32);
  TensorId workspace(std::string name, std::vector<int64_t> shape, DType dtype = DType::kFloat32);
  TensorId shared(std::string name, std::vector<int64_t> shape, DType dtype = DType::kFloat32);

  using Body = std::function<Stmt(Expr)>;
  Stmt loop(LoopKind kind, Expr extent, const Body& body, int lanes = 1);
  Stmt serial(Expr extent, const Body& body) { return loop(LoopKind::kSerial, extent, body); }
  Stmt parallel(Expr extent, const Body& body) { return loop(LoopKind::kParallel, extent, body); }
  Stmt unroll(Expr extent, const Body& body) { return loop(LoopKind::kUnroll, extent, body); }
  Stmt vectorize(int lanes, Expr extent, const Body& body) {
    return loop(LoopKind::kVectorize, extent, body, lanes);
  }
  Stmt blocks(Expr extent, const Body& body) { return loop(LoopKind::kBlock, extent, body); }
  Stmt threads(Expr extent, const Body& body) { return loop(LoopKind::kThread, extent, body); }
  Stmt barrier() const { return make_stmt(Barrier{}); }
  Stmt let(Expr value, const Body& body);
  Stmt allocate(TensorId buffer, Stmt body) const {
    return make_stmt(Allocate{buffer, std::move(body)});
  }
  Stmt guard(Expr condition, Stmt then) const { return make_stmt(If{condition, std::move(then)}); }
  Stmt block(std::vector<Stmt> parts) const { return make_stmt(Block{std::move(parts)}); }
  Stmt store(TensorId to, std::vector<Expr> at, Expr value) const {
    return make_stmt(Store{to, std::move(at), std::move(value)});
  }
  /// to[at] = to[at] + value.
  Stmt add(TensorId to, std::vector<Expr> at, Expr value) const;
  Expr read(TensorId from, std::vector<Expr> at) const {
    return load(from, std::move(at), program[from].dtype);
  }

  Program program;

 private:
  TensorId argument(std::string name, std::vector<int64_t> shape, DType dtype, bool output);
};

inline TensorId ProgramBuilder::argument(std::string name,
                                         std::vector<int64_t> shape,
                                         DType dtype,
                                         bool output) {
  Buffer buffer{.name = std::move(name),
                .dtype = dtype,
                .shape = std::move(shape),
                .output = output,
                .pack = {}};
  program.args.push_back(program.add_buffer(std::move(buffer)));
  return program.args.back();
}

inline TensorId ProgramBuilder::input(std::string name, std::vector<int64_t> shape, DType dtype) {
  return argument(std::move(name), std::move(shape), dtype, false);
}

inline TensorId ProgramBuilder::output(std::string name, std::vector<int64_t> shape, DType dtype) {
  return argument(std::move(name), std::move(shape), dtype, true);
}

inline TensorId ProgramBuilder::registers(std::string name,
                                          std::vector<int64_t> shape,
                                          int lanes,
                                          DType dtype) {
  return program.add_buffer({.name = std::move(name),
                             .dtype = dtype,
                             .shape = std::move(shape),
                             .scope = Scope::kRegister,
                             .lanes = lanes,
                             .pack = {}});
}

inline TensorId ProgramBuilder::local(std::string name, std::vector<int64_t> shape, DType dtype) {
  return program.add_buffer({.name = std::move(name),
                             .dtype = dtype,
                             .shape = std::move(shape),
                             .scope = Scope::kLocal,
                             .pack = {}});
}

inline TensorId ProgramBuilder::shared(std::string name, std::vector<int64_t> shape, DType dtype) {
  return program.add_buffer({.name = std::move(name),
                             .dtype = dtype,
                             .shape = std::move(shape),
                             .scope = Scope::kShared,
                             .pack = {}});
}

inline TensorId ProgramBuilder::workspace(std::string name,
                                          std::vector<int64_t> shape,
                                          DType dtype) {
  Buffer buffer{.name = std::move(name),
                .dtype = dtype,
                .shape = std::move(shape),
                .scope = Scope::kWorkspace,
                .pack = {},
                .workspace_offset = program.workspace_bytes};
  program.workspace_bytes += (buffer.bytes() + 63) / 64 * 64;
  return program.add_buffer(std::move(buffer));
}

inline Stmt ProgramBuilder::loop(LoopKind kind, Expr extent, const Body& body, int lanes) {
  const VarId var = program.add_var("i" + std::to_string(program.var_names.size()));
  const Expr value = make_var(var, program.var_names.back());
  return make_stmt(For{var, extent, kind, lanes, body(value)});
}

inline Stmt ProgramBuilder::let(Expr value, const Body& body) {
  const VarId var = program.add_var("x" + std::to_string(program.var_names.size()));
  return make_stmt(Let{var, value, body(make_var(var, program.var_names.back()))});
}

inline Stmt ProgramBuilder::add(TensorId to, std::vector<Expr> at, Expr value) const {
  return store(to, at, read(to, at) + value);
}

}  // namespace pruner
