// Matrix products by statements of warps, written by hand as a lowering would make them: for the
// tests of the interpreter, of CUDA C and of the fake driver. Each comes as it is right, and some
// with a planted mistake.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lower/program_builder.h"
#include "support/rng.h"

namespace pruner {

/// `WarpPlant` is the mistake in a program.
enum class WarpPlant {
  kNothing,
  kNoWait,
  kNoCommit,
  kNoBarrier,
  kTooFewStages,
  kOverwrites,  // overwrites elements that other threads read, with no barrier between
  kPastEnd
};

/// c = a * b, a [m][k], b [n][k] or, with `b_by_rows`, [k][n]. Each of `warps_m` x `warps_n` warps
/// has `frags_m` x `frags_n` sums; a chunk of the reduction is `steps` instructions long.
struct WarpMatmul {
  const MmaInstruction* instruction;
  int64_t m = 56, n = 48, k = 160;
  int warps_m = 2, warps_n = 2, frags_m = 2, frags_n = 2, steps = 2;
  int stages = 3;           // 0: fetched by plain loads, and waited for at barriers
  bool by_matrices = true;  // fragments are loaded by LoadMatrix; else element by element
  bool b_by_rows = false;
  int copied_bytes = 16;  // at once
};

class WarpMatmulWriter {
 public:
  WarpMatmulWriter(const WarpMatmul& g, WarpPlant plant) : g_(g), plant_(plant), b_("matmul") {
    const DType sum = row_.sum;
    a_ = b_.input("a", {g.m, g.k}, row_.a);
    w_ = b_.input("b", g.b_by_rows ? std::vector{g.k, g.n} : std::vector{g.n, g.k}, row_.b);
    c_ = b_.output("c", {g.m, g.n}, sum);
    a_s_ = b_.shared("a.shared", {slots_, tile_m_, tile_k_}, row_.a);
    b_s_ = b_.shared(
        "b.shared",
        g.b_by_rows ? std::vector{slots_, tile_k_, tile_n_} : std::vector{slots_, tile_n_, tile_k_},
        row_.b);
    sums_ = registers("sums", {g.frags_m, g.frags_n, row_.sum_fragment().elements()}, sum);
    a_f_ = registers("a.fragments", {g.frags_m, row_.a_fragment().elements()}, row_.a);
    b_f_ = registers("b.fragments", {g.frags_n, row_.b_fragment().elements()}, row_.b);
  }

  Program program() {
    const int64_t blocks_n = ceil(g_.n, tile_n_);
    b_.program.body = b_.blocks(ceil(g_.m, tile_m_) * blocks_n, [&](Expr block) {
      m0_ = floor_div(block, Expr(blocks_n)) * tile_m_;
      n0_ = floor_mod(block, Expr(blocks_n)) * tile_n_;
      return b_.allocate(a_s_, b_.allocate(b_s_, b_.threads(threads_, [&](Expr t) {
        return b_.let(floor_div(t, Expr(kWarpLanes)), [&](Expr warp) {
          return b_.let(floor_mod(t, Expr(kWarpLanes)), [&](Expr lane) {
            t_ = t;
            lane_ = lane;
            warp_m_ = floor_div(warp, Expr(g_.warps_n)) * Expr(g_.frags_m * row_.m);
            warp_n_ = floor_mod(warp, Expr(g_.warps_n)) * Expr(g_.frags_n * row_.n);
            return b_.allocate(
                sums_,
                b_.allocate(a_f_, b_.allocate(b_f_, b_.block({clear(), all_chunks(), write()}))));
          });
        });
      })));
    });
    return b_.program;
  }

 private:
  static int64_t ceil(int64_t a, int64_t b) { return (a + b - 1) / b; }
  TensorId registers(const char* name, std::vector<int64_t> shape, DType dtype) {
    return b_.registers(name, std::move(shape), 1, dtype);
  }
  Expr zero(DType dtype) const { return is_float(dtype) ? float_imm(0, dtype) : int_imm(0, dtype); }

  Stmt each_fragment(const std::function<Stmt(Expr, Expr)>& body) {
    return b_.unroll(g_.frags_m, [&](Expr i) {
      return b_.unroll(g_.frags_n, [&](Expr j) { return body(i, j); });
    });
  }

  Stmt clear() {
    return each_fragment([&](Expr i, Expr j) {
      return b_.unroll(row_.sum_fragment().elements(), [&](Expr v) {
        return b_.store(sums_, {i, j, v}, zero(row_.sum));
      });
    });
  }

  Stmt all_chunks() {
    if (g_.stages == 0) {
      const auto step = [&](Expr chunk) {
        return b_.block({fetch(chunk, Expr(0)), b_.barrier(), multiply(Expr(0)), b_.barrier()});
      };
      return b_.serial(chunks_, [&](Expr number) { return b_.let(number, step); });
    }
    std::vector<Stmt> parts;
    const int ahead = g_.stages - 1;
    for (int s = 0; s < ahead; ++s) parts.push_back(b_.block({fetch(Expr(s), Expr(s)), commit()}));
    parts.push_back(b_.serial(chunks_, [&](Expr chunk) {
      const Expr next = chunk + Expr(ahead);
      if (plant_ == WarpPlant::kOverwrites) {
        const Expr slot = floor_mod(chunk, Expr(slots_));
        return b_.block({make_stmt(Wait{ahead - 1}),
                         b_.barrier(),
                         multiply(slot),
                         fetch(next, slot),
                         commit()});
      }
      return b_.block({plant_ == WarpPlant::kNoWait ? b_.block({}) : make_stmt(Wait{ahead - 1}),
                       plant_ == WarpPlant::kNoBarrier ? b_.block({}) : b_.barrier(),
                       fetch(next, floor_mod(next, Expr(slots_))),
                       commit(),
                       multiply(floor_mod(chunk, Expr(slots_)))});
    }));
    return b_.block(parts);
  }
  Stmt commit() const {
    return plant_ == WarpPlant::kNoCommit ? b_.block({}) : make_stmt(Commit{});
  }

  // The place of an element in shared rows of `cols`: 16 bytes after 16 bytes, exchanged so that
  // eight rows' lie in different banks.
  Expr swizzled(Expr row, Expr col, int64_t cols, DType dtype) const {
    const int64_t run = 16 / dtype_bytes(dtype), runs = cols / run;
    if (runs < 2) return col;
    const int64_t kinds = std::min<int64_t>(runs, 8);
    const Expr turn = floor_mod(floor_div(row, Expr(8 / kinds)), Expr(kinds));
    return (floor_div(col, Expr(run)) ^ turn) * Expr(run) + floor_mod(col, Expr(run));
  }

  Stmt fetch(Expr chunk, Expr slot) {
    const Expr k0 = chunk * tile_k_;
    const Stmt a = fetch_tile(a_s_, a_, slot, m0_, k0, g_.m, g_.k);
    return b_.block({a,
                     g_.b_by_rows ? fetch_tile(b_s_, w_, slot, k0, n0_, g_.k, g_.n)
                                  : fetch_tile(b_s_, w_, slot, n0_, k0, g_.n, g_.k)});
  }

  // Fetches the part of a tile that lies inside the matrix; 0 elsewhere.
  Stmt fetch_tile(
      TensorId to, TensorId from, Expr slot, Expr row0, Expr col0, int64_t rows, int64_t cols) {
    const Buffer& tile = b_.program[to];
    const int64_t run = g_.copied_bytes / dtype_bytes(tile.dtype);
    const int64_t runs = tile.shape[2] / run, all = tile.shape[1] * runs;
    return b_.unroll(Expr(ceil(all, threads_)), [&](Expr round) {
      const Expr at = round * threads_ + t_;
      const Expr row = floor_div(at, Expr(runs)), col = floor_mod(at, Expr(runs)) * run;
      const Expr y = row0 + row, x = col0 + col,
                 into = swizzled(row, col, tile.shape[2], tile.dtype);
      const Expr past = plant_ == WarpPlant::kPastEnd ? Expr(1) : Expr(0);
      const Expr valid =
          select(y < Expr(rows) + past, max(min(Expr(cols) - x, Expr(run)), Expr(0)), Expr(0));
      const Stmt copy = make_stmt(
          AsyncCopy{{to, {slot, row, into}}, {from, {y, x}}, static_cast<int>(run), valid});
      const auto one = [&](Expr e) {
        return b_.store(to,
                        {slot, row, into + e},
                        select(e < valid, b_.read(from, {y, x + e}), zero(tile.dtype)));
      };
      return b_.guard(at<Expr(all), g_.stages> 0 ? copy : b_.serial(run, one));
    });
  }

  Stmt multiply(Expr slot) {
    return b_.unroll(g_.steps, [&](Expr step) {
      const Expr k0 = step * row_.k;
      return b_.block(
          {b_.unroll(g_.frags_m,
                     [&](Expr i) {
                       return load(a_f_, a_s_, row_.a_fragment(), i, 1, slot, warp_m_, k0);
                     }),
           load_b(slot, k0),
           each_fragment([&](Expr i, Expr j) {
             return make_stmt(
                 Mma{&row_, {sums_, {i, j, Expr(0)}}, {a_f_, {i, Expr(0)}}, {b_f_, {j, Expr(0)}}});
           })});
    });
  }

  Stmt load_b(Expr slot, Expr k0) {
    const Fragment f = row_.b_fragment();
    const int each = f.elements() / f.run;  // matrices of a fragment
    const int together = g_.by_matrices && g_.frags_n % 2 == 0 && each <= 2 ? 2 : 1;
    return b_.unroll(g_.frags_n / together, [&](Expr j) {
      return load(b_f_, b_s_, f, j * together, together, slot, warp_n_, k0);
    });
  }

  // `together` fragments from number `at` on, of the rows from `first` on.
  Stmt load(TensorId to,
            TensorId from,
            const Fragment& f,
            Expr at,
            int together,
            Expr slot,
            Expr first,
            Expr k0) {
    const bool by_rows = g_.b_by_rows && from == b_s_;
    const Buffer& tile = b_.program[from];
    // `place` gives the place in shared memory of element k of a row (of the fragments).
    const auto place = [&](Expr row, Expr k) {
      const Expr y = by_rows ? k0 + k : first + row, x = by_rows ? first + row : k0 + k;
      return std::vector<Expr>{slot, y, swizzled(y, x, tile.shape[2], tile.dtype)};
    };
    const Expr row0 = at * Expr(f.rows);
    if (!g_.by_matrices) {
      return b_.unroll(f.elements(), [&](Expr v) {
        const Expr read = b_.read(from, place(row0 + f.row(lane_, v), f.col(lane_, v)));
        return b_.store(to, {at, v}, read);
      });
    }
    const int matrices = together * f.elements() / f.run, down = f.rows / 8;
    const int along = matrices / together / down;
    const Expr matrix = floor_mod(floor_div(lane_, Expr(8)), Expr(matrices));
    const Expr line = floor_mod(lane_, Expr(8));
    const Expr fragment = floor_div(matrix, Expr(along * down));
    const Expr part = floor_mod(matrix, Expr(along * down));
    const Expr row = row0 + fragment * Expr(f.rows) + floor_mod(part, Expr(down)) * Expr(8);
    const Expr k = floor_div(part, Expr(down)) * Expr(4 * f.run);
    return make_stmt(LoadMatrix{{to, {at, Expr(0)}},
                                {from, by_rows ? place(row, k + line) : place(row + line, k)},
                                matrices,
                                by_rows});
  }

  Stmt write() {
    const Fragment f = row_.sum_fragment();
    return each_fragment([&](Expr i, Expr j) {
      return b_.unroll(f.elements() / 2, [&](Expr h) {
        const Expr row = m0_ + warp_m_ + i * row_.m + f.row(lane_, h * 2);
        const Expr col = n0_ + warp_n_ + j * row_.n + f.col(lane_, h * 2);
        const auto one = [&](Expr l) {
          return b_.store(c_, {row, col + l}, b_.read(sums_, {i, j, h * 2 + l}));
        };
        return b_.guard(row < Expr(g_.m) && col < Expr(g_.n), b_.vectorize(2, 2, one));
      });
    });
  }

  const WarpMatmul g_;
  const MmaInstruction& row_ = *g_.instruction;
  const WarpPlant plant_;
  ProgramBuilder b_;
  const int64_t tile_m_ = int64_t{g_.warps_m} * g_.frags_m * row_.m;
  const int64_t tile_n_ = int64_t{g_.warps_n} * g_.frags_n * row_.n;
  const int64_t tile_k_ = int64_t{g_.steps} * row_.k, chunks_ = ceil(g_.k, tile_k_);
  const int64_t threads_ = int64_t{g_.warps_m} * g_.warps_n * kWarpLanes;
  const int64_t slots_ =
      std::max(1, plant_ == WarpPlant::kTooFewStages ? g_.stages - 1 : g_.stages);
  TensorId a_, w_, c_, a_s_, b_s_, sums_, a_f_, b_f_;
  Expr m0_, n0_, t_, lane_, warp_m_, warp_n_;
};

inline Program warp_matmul(const WarpMatmul& g, WarpPlant plant = WarpPlant::kNothing) {
  return WarpMatmulWriter(g, plant).program();
}

struct NamedMatmul {
  std::string name;
  WarpMatmul matmul;
};

/// Returns products for every instruction of one warp, fetched by copies if its devices have
/// copies, else by plain loads. Fragments are loaded by matrices and element by element, b by rows
/// if possible.
inline std::vector<NamedMatmul> warp_matmuls() {
  std::vector<NamedMatmul> all;
  for (const MmaInstruction& row : mma_instructions()) {
    if (row.of_group()) continue;
    const std::string name = std::string(row.shape) + "_" + std::string(dtype_name(row.sum)) + "_" +
                             std::string(dtype_name(row.a)) + "_" + std::string(dtype_name(row.b));
    WarpMatmul g = {.instruction = &row, .stages = row.oldest >= 80 ? 3 : 0};
    all.push_back({name, g});
    if (dtype_bytes(row.a) == 2) {
      g.b_by_rows = true;
      all.push_back({name + "_rows", g});
    }
    g.by_matrices = false;
    all.push_back({name + "_elements", g});
  }
  // Rows that begin at multiples of 8 bytes, and of 4.
  WarpMatmul narrow = all.front().matmul;
  narrow.k = 156;
  narrow.copied_bytes = 8;
  all.push_back({"narrow", narrow});
  narrow.k = 158;
  narrow.copied_bytes = 4;
  all.push_back({"narrowest", narrow});
  return all;
}

/// Returns a product whose blocks take 96 KiB of shared memory.
inline WarpMatmul large_warp_matmul() {
  return {.instruction =
              find_mma_instruction("m16n8k16", DType::kFloat16, DType::kFloat16, DType::kFloat32),
          .m = 200,
          .n = 136,
          .k = 136,
          .frags_m = 4,
          .frags_n = 8,
          .steps = 4};
}

/// Small whole numbers, of which all sums are exact.
inline std::vector<Tensor> warp_arguments(const Program& program, uint64_t seed = 1) {
  Rng rng(seed);
  std::vector<Tensor> args;
  for (const TensorId id : program.args) {
    const Buffer& buffer = program[id];
    Tensor& tensor = args.emplace_back(buffer.dtype, buffer.shape);
    const int64_t least = row_of(buffer.dtype).kind == DTypeKind::kUInt ? 0 : -2;
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      const int64_t drawn = buffer.output ? -1 : least + static_cast<int64_t>(rng.uniform() * 5);
      is_float(buffer.dtype) ? tensor.set(i, static_cast<double>(drawn)) : tensor.set_int(i, drawn);
    }
  }
  return args;
}

/// Whether c is a * b to the last bit.
inline void expect_product(const WarpMatmul& g, const std::vector<Tensor>& args) {
  const auto get = [&](size_t arg, int64_t i) {
    return is_float(args[arg].dtype()) ? args[arg].get(i)
                                       : static_cast<double>(args[arg].get_int(i));
  };
  for (int64_t i = 0; i < g.m; ++i) {
    for (int64_t j = 0; j < g.n; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < g.k; ++k)
        sum += get(0, i * g.k + k) * get(1, g.b_by_rows ? k * g.n + j : j * g.k + k);
      ASSERT_EQ(get(2, i * g.n + j), sum) << i << ", " << j;
    }
  }
}

}  // namespace pruner
