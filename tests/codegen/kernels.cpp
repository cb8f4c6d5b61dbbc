#include "codegen/kernels.h"

namespace pruner {

Program matmul_program(const MatmulShape& s) {
  ProgramBuilder b("matmul");
  const int64_t columns = int64_t{s.vectors} * s.lanes;
  const TensorId a =
      s.packed_a ? b.input("A", {s.m / s.rows, s.k, s.rows}) : b.input("A", {s.m, s.k});
  const TensorId w = b.input("B", {s.n / columns, s.k, columns});
  const TensorId c = b.output("C", {s.m, s.n});
  const TensorId acc = b.registers("acc", {s.rows, columns}, s.lanes);
  // Runs over the tile: element (row, column) of it.
  const auto tile = [&](const std::function<Stmt(Expr, Expr)>& body) {
    return b.unroll(s.rows, [&](Expr r) {
      return b.unroll(s.vectors, [&](Expr v) {
        return b.vectorize(
            s.lanes, s.lanes, [&](Expr l) { return body(r, v * Expr(s.lanes) + l); });
      });
    });
  };
  const Stmt zero = b.parallel(s.m, [&](Expr i) {
    return b.serial(s.n / s.lanes, [&](Expr j) {
      return b.vectorize(s.lanes, s.lanes, [&](Expr l) {
        return b.store(c, {i, j * Expr(s.lanes) + l}, float_imm(0));
      });
    });
  });
  const Stmt product = b.serial(s.k / s.k_block, [&](Expr kb) {
    return b.serial(s.n / columns, [&](Expr jb) {
      return b.serial(s.m / s.rows, [&](Expr ib) {
        const auto place = [&](Expr r, Expr x) {
          return std::vector<Expr>{ib * Expr(s.rows) + r, jb * Expr(columns) + x};
        };
        const Stmt inner = b.serial(s.k_block / s.unroll, [&](Expr ko) {
          return b.unroll(s.unroll, [&](Expr ki) {
            return tile([&](Expr r, Expr x) {
              const Expr k = kb * Expr(s.k_block) + ko * Expr(s.unroll) + ki;
              const Expr left =
                  s.packed_a ? b.read(a, {ib, k, r}) : b.read(a, {ib * Expr(s.rows) + r, k});
              return b.add(acc, {r, x}, left * b.read(w, {jb, k, x}));
            });
          });
        });
        return b.allocate(acc,
                          b.block({tile([&](Expr r, Expr x) {
                                     return b.store(acc, {r, x}, b.read(c, place(r, x)));
                                   }),
                                   inner,
                                   tile([&](Expr r, Expr x) {
                                     return b.store(c, place(r, x), b.read(acc, {r, x}));
                                   })}));
      });
    });
  });
  b.program.body = b.block({zero, product});
  return b.program;
}

Program conv_program(const ConvShape& s) {
  ProgramBuilder b("conv");
  const int64_t L = s.lanes;
  const TensorId x = b.input("X", {s.channels / L, s.height + 2, s.width_total + 2, L});
  const TensorId w = b.input("W", {s.out_channels / L, s.channels / L, 3, 3, L, L});
  const TensorId y = b.output("Y", {s.out_channels / L, s.height, s.width_total, L});
  const TensorId acc = b.registers("acc", {s.width, s.vectors, L}, s.lanes);
  const auto tile = [&](const std::function<Stmt(Expr, Expr, Expr)>& body) {
    return b.unroll(s.width, [&](Expr q) {
      return b.unroll(s.vectors, [&](Expr v) {
        return b.vectorize(s.lanes, s.lanes, [&](Expr l) { return body(q, v, l); });
      });
    });
  };
  b.program.body = b.parallel(s.out_channels / L / s.vectors, [&](Expr ob) {
    return b.serial(s.height, [&](Expr h) {
      return b.serial(s.width_total / s.width, [&](Expr wb) {
        const Stmt inner = b.serial(s.channels / L, [&](Expr cb) {
          return b.serial(3, [&](Expr kh) {
            return b.serial(3, [&](Expr kw) {
              return b.serial(L / s.unroll, [&](Expr co) {
                return b.unroll(s.unroll, [&](Expr ci) {
                  return tile([&](Expr q, Expr v, Expr l) {
                    const Expr c = co * Expr(s.unroll) + ci;
                    return b.add(acc,
                                 {q, v, l},
                                 b.read(x, {cb, h + kh, wb * Expr(s.width) + q + kw, c}) *
                                     b.read(w, {ob * Expr(s.vectors) + v, cb, kh, kw, c, l}));
                  });
                });
              });
            });
          });
        });
        return b.allocate(acc,
                          b.block({tile([&](Expr q, Expr v, Expr l) {
                                     return b.store(acc, {q, v, l}, float_imm(0));
                                   }),
                                   inner,
                                   tile([&](Expr q, Expr v, Expr l) {
                                     return b.store(
                                         y,
                                         {ob * Expr(s.vectors) + v, h, wb * Expr(s.width) + q, l},
                                         b.read(acc, {q, v, l}));
                                   })}));
      });
    });
  });
  return b.program;
}

PrunerPool* serial_pool() {
  static PrunerPool pool = {
      [](PrunerPool*, PrunerBody body, void* closure, int64_t n) { body(closure, 0, n); }, 1};
  return &pool;
}

Target cpu_target(std::string mcpu) {
  Target target;
  target.mcpu = std::move(mcpu);
  return target;
}

void call_kernel(PrunerKernel kernel, std::span<Tensor> args, int64_t workspace_bytes) {
  std::vector<void*> pointers;
  for (Tensor& arg : args) pointers.push_back(arg.data());
  Tensor workspace(DType::kInt8, {workspace_bytes});
  kernel(pointers.data(), workspace.data(), serial_pool());
}

}  // namespace pruner
