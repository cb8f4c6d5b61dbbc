// GPU programs written by hand, as lowering makes them: for the tests of the interpreter, of code
// generation and of the devices. Each comes as it is right, and some with a planted mistake.
#pragma once

#include <string>
#include <vector>

#include "lower/program_builder.h"
#include "support/rng.h"

namespace pruner {

/// `Plant` is the mistake in a program.
enum class Plant { kNothing, kNoBarrier, kPastGlobal, kPastShared, kDividedBarrier, kTwoBlocks };

/// c = a * b by tiles: a block has `threads_m` x `threads_n` threads, a thread `vthreads` rows of
/// `cols` columns; both operands are fetched to shared memory by all threads, `lanes` at a time.
struct GpuMatmul {
  int64_t m = 64, n = 64, k = 64;
  int64_t threads_m = 8, threads_n = 8, vthreads = 2, cols = 4, k_tile = 16;
  int lanes = 4;
  DType in = DType::kFloat32, out = DType::kFloat32;
};

class GpuMatmulWriter {
 public:
  GpuMatmulWriter(const GpuMatmul& g, Plant plant) : g_(g), plant_(plant), b_("matmul") {
    a_ = b_.input("a", {g.m, g.k}, g.in);
    w_ = b_.input("b", {g.k, g.n}, g.in);
    c_ = b_.output("c", {g.m, g.n}, g.out);
    a_s_ = b_.shared("a.shared", {tile_m_, g.k_tile}, g.in);
    b_s_ = b_.shared("b.shared", {g.k_tile, tile_n_}, g.in);
    acc_ = b_.registers("acc", {g.vthreads, g.cols}, 1);
  }

  Program program() {
    const int64_t blocks_n = g_.n / tile_n_;
    b_.program.body = b_.blocks(g_.m / tile_m_ * blocks_n, [&](Expr block) {
      return with(bm_, floor_div(block, blocks_n), [&] {
        return with(bn_, floor_mod(block, blocks_n), [&] { return tile(); });
      });
    });
    return b_.program;
  }

 private:
  Stmt with(Expr& var, Expr value, const std::function<Stmt()>& body) {
    const auto bind = [&](Expr bound) {
      var = bound;
      return body();
    };
    return b_.let(value, bind);
  }

  Stmt tile() {
    const Stmt threads = b_.threads(threads_, [&](Expr t) {
      t_ = t;
      return b_.allocate(acc_, b_.block({zero(), all_steps(), write()}));
    });
    return b_.allocate(a_s_, b_.allocate(b_s_, threads));
  }

  Stmt each_element(const std::function<Stmt(Expr, Expr)>& body) {
    const auto row = [&](Expr v) { return b_.unroll(g_.cols, [&](Expr j) { return body(v, j); }); };
    return b_.unroll(g_.vthreads, row);
  }

  Stmt zero() {
    return each_element([&](Expr v, Expr j) { return b_.store(acc_, {v, j}, float_imm(0)); });
  }

  Stmt all_steps() {
    return b_.serial(g_.k / g_.k_tile, [&](Expr ko) { return step(ko); });
  }

  Stmt step(Expr ko) {
    std::vector<Stmt> parts = {fetch_a(ko), fetch_b(ko)};
    if (plant_ == Plant::kDividedBarrier) {
      parts.push_back(b_.guard(t_ < Expr(threads_ / 2), b_.barrier()));
    } else if (plant_ != Plant::kNoBarrier) {
      parts.push_back(b_.barrier());
    }
    parts.push_back(b_.serial(g_.k_tile, [&](Expr kk) { return sum(kk); }));
    parts.push_back(b_.barrier());
    return b_.block(parts);
  }

  Stmt fetch_a(Expr ko) {
    return fetch(a_s_, tile_m_, g_.k_tile, [&](Expr row, Expr col) {
      return b_.read(a_, {bm_ * tile_m_ + row, ko * g_.k_tile + col});
    });
  }
  Stmt fetch_b(Expr ko) {
    return fetch(b_s_, g_.k_tile, tile_n_, [&](Expr row, Expr col) {
      return b_.read(w_, {ko * g_.k_tile + row, bn_ * tile_n_ + col});
    });
  }

  // A tile of rows x cols, all of it fetched by all threads.
  Stmt fetch(TensorId to, int64_t rows, int64_t cols, const std::function<Expr(Expr, Expr)>& from) {
    const int64_t past = plant_ == Plant::kPastShared ? 1 : 0;
    const auto round = [&](Expr r) {
      const Expr at = (r * threads_ + t_) * g_.lanes;
      const Expr row = floor_div(at, cols), first = floor_mod(at, cols);
      const auto lane = [&](Expr l) {
        return b_.store(to, {row, first + l + past}, from(row, first + l));
      };
      return b_.vectorize(g_.lanes, g_.lanes, lane);
    };
    return b_.serial(rows * cols / (threads_ * g_.lanes), round);
  }

  Stmt sum(Expr kk) {
    const Expr tm = floor_div(t_, g_.threads_n), tn = floor_mod(t_, g_.threads_n);
    return each_element([&](Expr v, Expr j) {
      const Expr x = b_.read(a_s_, {v * g_.threads_m + tm, kk});
      const Expr y = b_.read(b_s_, {kk, tn * g_.cols + j});
      return b_.add(acc_, {v, j}, cast(DType::kFloat32, x) * cast(DType::kFloat32, y));
    });
  }

  Stmt write() {
    const Expr tm = floor_div(t_, g_.threads_n), tn = floor_mod(t_, g_.threads_n);
    const Expr first_row = plant_ == Plant::kTwoBlocks ? Expr(0) : bm_ * tile_m_;
    const int64_t past = plant_ == Plant::kPastGlobal ? 1 : 0;
    return b_.unroll(g_.vthreads, [&](Expr v) {
      const Expr row = first_row + v * g_.threads_m + tm;
      const auto lane = [&](Expr j) {
        const Expr col = bn_ * tile_n_ + tn * g_.cols + j + past;
        return b_.store(c_, {row, col}, cast(g_.out, b_.read(acc_, {v, j})));
      };
      return b_.vectorize(4, g_.cols, lane);
    });
  }

  const GpuMatmul g_;
  const Plant plant_;
  ProgramBuilder b_;
  int64_t tile_m_ = g_.threads_m * g_.vthreads, tile_n_ = g_.threads_n * g_.cols;
  int64_t threads_ = g_.threads_m * g_.threads_n;
  TensorId a_, w_, c_, a_s_, b_s_, acc_;
  Expr bm_, bn_, t_;
};

inline Program gpu_matmul(const GpuMatmul& g, Plant plant = Plant::kNothing) {
  return GpuMatmulWriter(g, plant).program();
}

/// y[i] = sum(x[i, :]): a block a row, its threads add up parts of it and then those in a tree.
inline Program gpu_row_sums(int64_t rows, int64_t cols, int64_t threads) {
  ProgramBuilder b("row_sums");
  const TensorId x = b.input("x", {rows, cols}), y = b.output("y", {rows});
  const TensorId part = b.shared("part", {threads}), sum = b.registers("sum", {1}, 1);
  b.program.body = b.blocks(rows, [&](Expr row) {
    return b.allocate(part, b.threads(threads, [&](Expr t) {
      std::vector<Stmt> parts = {
          b.store(sum, {0}, float_imm(0)),
          b.serial((cols + threads - 1) / threads,
                   [&](Expr i) {
                     const Expr col = i * threads + t;
                     return b.guard(col < Expr(cols), b.add(sum, {0}, b.read(x, {row, col})));
                   }),
          b.store(part, {t}, b.read(sum, {0})),
          b.barrier()};
      for (int64_t step = threads / 2; step > 0; step /= 2) {
        parts.push_back(b.guard(t < Expr(step), b.add(part, {t}, b.read(part, {t + step}))));
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
    return b.block(
        {b.store(top, {row}, b.read(x, {row, 0})),
         b.serial(cols,
                  [&](Expr col) {
                    return b.store(top, {row}, max(b.read(top, {row}), b.read(x, {row, col})));
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
          b.vectorize(
              4,
              4,
              [&](Expr l) {
                const Expr i = first + l;
                return b.block(
                    {b.store(
                         y,
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
           b.guard(
               t < Expr(1),
               b.block({b.store(odd, {p}, binary(BinaryOp::kEq, floor_mod(row, Expr(2)), Expr(1))),
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
  const GpuMatmul half = {.vthreads = 4, .lanes = 8, .in = DType::kFloat16, .out = DType::kFloat16};
  return {{"matmul", gpu_matmul({})},
          {"half_matmul", gpu_matmul(half)},
          {"row_sums", gpu_row_sums(5, 200, 64)},
          {"softmax", gpu_softmax(10, 33, 32)},
          {"shifted", gpu_shifted(60, 8)},
          {"intrinsics", gpu_intrinsics(32)},
          {"gather", gpu_gather(6, 8, 5)}};
}

}  // namespace pruner
