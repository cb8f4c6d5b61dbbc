// GPU programs written by hand, as lowering makes them: for the tests of the interpreter, of code
// generation and of the devices. Each comes as it is right, and some with a planted mistake.
#pragma once

#include <string>
#include <vector>

#include "lower/program_builder.h"
#include "support/rng.h"

namespace pruner {

/// What is wrong with a program.
enum class Plant { kNothing, kNoBarrier, kPastGlobal, kPastShared, kDividedBarrier, kTwoBlocks };

/// c = a * b by tiles: a block has `threads_m` x `threads_n` threads, a thread `vthreads` rows of
/// `cols` columns; both operands are fetched to shared memory by all threads, `lanes` at a time.
struct GpuMatmul {
  int64_t m = 64, n = 64, k = 64;
  int64_t threads_m = 8, threads_n = 8, vthreads = 2, cols = 4, k_tile = 16;
  int lanes = 4;
  DType in = DType::kFloat32, out = DType::kFloat32;
};

inline Program gpu_matmul(const GpuMatmul& g, Plant plant = Plant::kNothing) {
  ProgramBuilder b("matmul");
  const int64_t tile_m = g.threads_m * g.vthreads, tile_n = g.threads_n * g.cols;
  const int64_t threads = g.threads_m * g.threads_n, blocks_n = g.n / tile_n;
  const TensorId a = b.input("a", {g.m, g.k}, g.in), w = b.input("b", {g.k, g.n}, g.in);
  const TensorId c = b.output("c", {g.m, g.n}, g.out);
  const TensorId a_s = b.shared("a.shared", {tile_m, g.k_tile}, g.in);
  const TensorId b_s = b.shared("b.shared", {g.k_tile, tile_n}, g.in);
  const TensorId acc = b.registers("acc", {g.vthreads, g.cols}, 1);
  const int64_t past = plant == Plant::kPastGlobal ? 1 : 0;
  const int64_t past_shared = plant == Plant::kPastShared ? 1 : 0;
  // Elements `row`, `col` of a tile of `shape`, all of them fetched by all threads.
  const auto fetch = [&](TensorId to, int64_t rows, int64_t cols, Expr t, const auto& from) {
    const int64_t rounds = rows * cols / (threads * g.lanes);
    return b.serial(rounds, [&](Expr r) {
      const Expr at = (r * threads + t) * g.lanes;
      return b.vectorize(g.lanes, g.lanes, [&](Expr l) {
        const Expr row = floor_div(at, cols), col = floor_mod(at, cols) + l;
        return b.store(to, {row, col + past_shared}, from(row, col));
      });
    });
  };
  b.program.body = b.blocks(g.m / tile_m * blocks_n, [&](Expr block) {
    return b.let(floor_div(block, blocks_n), [&](Expr bm) {
      return b.let(floor_mod(block, blocks_n), [&](Expr bn) {
        return b.allocate(
            a_s, b.allocate(b_s, b.threads(threads, [&](Expr t) {
              const Expr tm = floor_div(t, g.threads_n), tn = floor_mod(t, g.threads_n);
              const Stmt zero = b.unroll(g.vthreads, [&](Expr v) {
                return b.unroll(g.cols,
                                [&](Expr j) { return b.store(acc, {v, j}, float_imm(0)); });
              });
              const auto product = [&](Expr v, Expr j, Expr kk) {
                const Expr x = b.read(a_s, {v * g.threads_m + tm, kk});
                const Expr y = b.read(b_s, {kk, tn * g.cols + j});
                return cast(DType::kFloat32, x) * cast(DType::kFloat32, y);
              };
              const Stmt sum = b.serial(g.k_tile, [&](Expr kk) {
                return b.unroll(g.vthreads, [&](Expr v) {
                  return b.unroll(
                      g.cols, [&](Expr j) { return b.add(acc, {v, j}, product(v, j, kk)); });
                });
              });
              const Stmt step = b.serial(g.k / g.k_tile, [&](Expr ko) {
                std::vector<Stmt> parts = {
                    fetch(a_s,
                          tile_m,
                          g.k_tile,
                          t,
                          [&](Expr row, Expr col) {
                            return b.read(a, {bm * tile_m + row, ko * g.k_tile + col});
                          }),
                    fetch(b_s, g.k_tile, tile_n, t, [&](Expr row, Expr col) {
                      return b.read(w, {ko * g.k_tile + row, bn * tile_n + col});
                    })};
                if (plant == Plant::kDividedBarrier) {
                  parts.push_back(b.guard(t < Expr(threads / 2), b.barrier()));
                } else if (plant != Plant::kNoBarrier) {
                  parts.push_back(b.barrier());
                }
                parts.push_back(sum);
                parts.push_back(b.barrier());
                return b.block(parts);
              });
              const Expr first_row =
                  plant == Plant::kTwoBlocks ? Expr(0) : bm * tile_m;
              const Stmt write = b.unroll(g.vthreads, [&](Expr v) {
                return b.vectorize(4, g.cols, [&](Expr j) {
                  return b.store(c,
                                 {first_row + v * g.threads_m + tm,
                                  bn * tile_n + tn * g.cols + j + past},
                                 cast(g.out, b.read(acc, {v, j})));
                });
              });
              return b.allocate(acc, b.block({zero, step, write}));
            })));
      });
    });
  });
  return b.program;
}

/// y[i] = sum(x[i, :]): a block a row, its threads add up parts of it and then those in a tree.
inline Program gpu_row_sums(int64_t rows, int64_t cols, int64_t threads) {
  ProgramBuilder b("row_sums");
  const TensorId x = b.input("x", {rows, cols}), y = b.output("y", {rows});
  const TensorId part = b.shared("part", {threads}), sum = b.registers("sum", {1}, 1);
  b.program.body = b.blocks(rows, [&](Expr row) {
    return b.allocate(
        part, b.threads(threads, [&](Expr t) {
          std::vector<Stmt> parts = {
              b.store(sum, {0}, float_imm(0)),
              b.serial((cols + threads - 1) / threads,
                       [&](Expr i) {
                         const Expr col = i * threads + t;
                         return b.guard(col < Expr(cols),
                                        b.add(sum, {0}, b.read(x, {row, col})));
                       }),
              b.store(part, {t}, b.read(sum, {0})),
              b.barrier()};
          for (int64_t step = threads / 2; step > 0; step /= 2) {
            parts.push_back(
                b.guard(t < Expr(step), b.add(part, {t}, b.read(part, {t + step}))));
            parts.push_back(b.barrier());
          }
          parts.push_back(b.guard(t < Expr(1), b.store(y, {row}, b.read(part, {0}))));
          return b.allocate(sum, b.block(parts));
        }));
  });
  return b.program;
}

/// Softmax of rows in two launches: the greatest and the sum of a row go through the workspace.
inline Program gpu_softmax(int64_t rows, int64_t cols, int64_t threads) {
  ProgramBuilder b("softmax");
  const TensorId x = b.input("x", {rows, cols}), y = b.output("y", {rows, cols});
  const TensorId top = b.workspace("top", {rows}), total = b.workspace("total", {rows});
  const auto each_row = [&](const auto& body) {
    return b.blocks((rows + threads - 1) / threads, [&](Expr block) {
      return b.threads(threads, [&](Expr t) {
        const Expr row = block * threads + t;
        return b.guard(row < Expr(rows), body(row));
      });
    });
  };
  const auto weight = [&](Expr row, Expr col) {
    return call(Intrinsic::kExp, {b.read(x, {row, col}) - b.read(top, {row})});
  };
  const Stmt first = each_row([&](Expr row) {
    return b.block({b.store(top, {row}, b.read(x, {row, 0})),
                    b.serial(cols,
                             [&](Expr col) {
                               return b.store(
                                   top, {row}, max(b.read(top, {row}), b.read(x, {row, col})));
                             }),
                    b.store(total, {row}, float_imm(0)),
                    b.serial(cols, [&](Expr col) { return b.add(total, {row}, weight(row, col)); })});
  });
  const Stmt second = b.blocks(rows, [&](Expr row) {
    return b.threads(threads, [&](Expr t) {
      return b.serial((cols + threads - 1) / threads, [&](Expr i) {
        const Expr col = i * threads + t;
        return b.guard(col < Expr(cols),
                       b.store(y, {row, col}, weight(row, col) / b.read(total, {row})));
      });
    });
  });
  b.program.body = b.block({first, second});
  return b.program;
}

/// y[i] = x[i - 3 mod n] + 2 of a padded row: vector loads where the place is known to be aligned,
/// lanes one by one where not, and negative numbers divided.
inline Program gpu_shifted(int64_t n, int64_t threads) {
  ProgramBuilder b("shifted");
  const TensorId x = b.input("x", {n}), y = b.output("y", {n}), z = b.output("z", {n});
  b.program.body = b.blocks((n / 4 + threads - 1) / threads, [&](Expr block) {
    return b.threads(threads, [&](Expr t) {
      const Expr first = (block * threads + t) * 4;
      return b.guard(
          first < Expr(n),
          b.vectorize(4, 4, [&](Expr l) {
            const Expr i = first + l;
            return b.block(
                {b.store(y,
                         {i},
                         select(first >= Expr(8), b.read(x, {i}), float_imm(0.1)) + float_imm(2)),
                 b.store(z, {i}, b.read(x, {floor_mod(i - 3, Expr(n))})),
                 b.add(z, {i}, cast(DType::kFloat32, floor_div(i - Expr(n), Expr(3))))});
          }));
    });
  });
  return b.program;
}

/// Every intrinsic of floats, on [0.1, 0.9): row f of the result is that of function f.
inline Program gpu_intrinsics(int64_t n) {
  ProgramBuilder b("intrinsics");
  constexpr int kFunctions = static_cast<int>(Intrinsic::kNot);
  const TensorId x = b.input("x", {n}), y = b.output("y", {kFunctions, n});
  b.program.body = b.blocks(1, [&](Expr) {
    return b.threads(n, [&](Expr t) {
      std::vector<Stmt> rows;
      for (int f = 0; f < kFunctions; ++f) {
        std::vector<Expr> args = {b.read(x, {t})};
        if (static_cast<Intrinsic>(f) == Intrinsic::kPow) args.push_back(float_imm(2.5));
        rows.push_back(b.store(y, {f, t}, call(static_cast<Intrinsic>(f), args)));
      }
      return b.block(rows);
    });
  });
  return b.program;
}

/// Rows of a table by an int64 index, and integers, bools and half precision on the way.
inline Program gpu_gather(int64_t rows, int64_t cols, int64_t picks) {
  ProgramBuilder b("gather");
  const TensorId table = b.input("table", {rows, cols}, DType::kFloat16);
  const TensorId index = b.input("index", {picks}, DType::kInt64);
  const TensorId y = b.output("y", {picks, cols}, DType::kFloat16);
  const TensorId odd = b.output("odd", {picks}, DType::kBool);
  const TensorId twice = b.output("twice", {picks}, DType::kInt32);
  const TensorId bytes = b.output("bytes", {picks}, DType::kInt8);
  b.program.body = b.blocks(picks, [&](Expr p) {
    return b.threads(cols / 2, [&](Expr t) {
      const Expr row = b.read(index, {p});
      return b.block(
          {b.vectorize(2,
                       2,
                       [&](Expr l) {
                         return b.store(y, {p, t * 2 + l}, b.read(table, {row, t * 2 + l}));
                       }),
           b.guard(t < Expr(1),
                   b.block({b.store(odd,
                                    {p},
                                    binary(BinaryOp::kEq, floor_mod(row, Expr(2)), Expr(1))),
                            b.store(twice, {p}, cast(DType::kInt32, row * Expr(2) - Expr(7))),
                            b.store(bytes, {p}, cast(DType::kInt8, row * Expr(40)))}))});
    });
  });
  return b.program;
}

/// Tensors for a program: inputs drawn (indices below 5), outputs NaN or -1.
inline std::vector<Tensor> gpu_arguments(const Program& program, uint64_t seed = 1) {
  Rng rng(seed);
  std::vector<Tensor> args;
  for (const TensorId id : program.args) {
    const Buffer& buffer = program[id];
    Tensor& tensor = args.emplace_back(buffer.dtype, buffer.shape);
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      const double drawn = 0.1 + 0.8 * rng.uniform();
      if (is_float(buffer.dtype)) {
        tensor.set(i, buffer.output ? std::numeric_limits<double>::quiet_NaN() : drawn);
      } else {
        tensor.set_int(i, buffer.output ? -1 : static_cast<int64_t>(drawn * 5));
      }
    }
  }
  return args;
}

struct NamedProgram {
  std::string name;
  Program program;
};

/// The right ones.
inline std::vector<NamedProgram> gpu_programs() {
  const GpuMatmul half = {.vthreads = 4,
                          .lanes = 8,
                          .in = DType::kFloat16,
                          .out = DType::kFloat16};
  return {{"matmul", gpu_matmul({})},
          {"half_matmul", gpu_matmul(half)},
          {"row_sums", gpu_row_sums(5, 200, 64)},
          {"softmax", gpu_softmax(10, 33, 32)},
          {"shifted", gpu_shifted(60, 8)},
          {"intrinsics", gpu_intrinsics(32)},
          {"gather", gpu_gather(6, 8, 5)}};
}

}  // namespace pruner
