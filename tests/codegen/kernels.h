// Kernels written by hand as Programs, as lowering makes them: for the tests and micro-benchmarks
// of code generation.
#pragma once

#include <functional>

#include "lower/program.h"
#include "pruner/kernel.h"

namespace pruner {

/// Builds programs with little ink: b.loop(kind, extent, [&](Expr i) { return b.store(...); }).
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

  using Body = std::function<Stmt(Expr)>;
  Stmt loop(LoopKind kind, Expr extent, const Body& body, int lanes = 1);
  Stmt serial(Expr extent, const Body& body) { return loop(LoopKind::kSerial, extent, body); }
  Stmt parallel(Expr extent, const Body& body) { return loop(LoopKind::kParallel, extent, body); }
  Stmt unroll(Expr extent, const Body& body) { return loop(LoopKind::kUnroll, extent, body); }
  Stmt vectorize(int lanes, Expr extent, const Body& body) {
    return loop(LoopKind::kVectorize, extent, body, lanes);
  }
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

/// C[m, n] += A[m, k] * B, B packed as [n / (vectors*lanes)][k][vectors*lanes]; register tiles of
/// rows x (vectors*lanes), k unrolled by `unroll`. k is cut in blocks of `k_block`.
struct MatmulShape {
  int64_t m, n, k, k_block;
  int rows, vectors, lanes, unroll;
  bool packed_a = false;  // A as [m / rows][k][rows]
};
Program matmul_program(const MatmulShape& shape);

/// A 3x3 convolution, stride 1, NCHWc, input padded ahead; tiles of `width` columns x `vectors`
/// blocks of output channels, input channels unrolled by `unroll`.
struct ConvShape {
  int64_t channels, height, width_total, out_channels;
  int width, vectors, lanes, unroll;
};
Program conv_program(const ConvShape& shape);

/// Runs everything on the caller's thread.
PrunerPool* serial_pool();
/// The target "this machine" (empty mcpu) or another CPU.
Target cpu_target(std::string mcpu);
/// Calls a kernel on tensors in the program's order of arguments.
void call_kernel(PrunerKernel kernel, std::span<Tensor> args, int64_t workspace_bytes);

}  // namespace pruner
