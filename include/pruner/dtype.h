/* The element types of tensors, a row each. Who asks for a property of a type finds it here: the
   compiler's own DType (src/tensor/dtype.h) and its names, sizes and conversions are made of these
   rows.

   ROW(ABI's name, C++'s name, text, kind, bits, bits of the fraction, ONNX's number, numpy's code)

   Kinds: kFloat (IEEE's layout: sign, exponent, fraction), kInt (two's complement), kUInt, kBool (a
   byte, 0 or 1), kCode (a float of few bits, of which we know the bits only: src/tensor/code.h).
   ONNX's number is the one of TensorProto.DataType. numpy has no bfloat16; files have the code of
   ml_dtypes'.

   An element takes whole bytes: one of int4 is a signed byte from -8 to 7, one of uint2 a byte from
   0 to 3, one of a kCode its bits in a byte. Codes and integers narrower than a byte are written to
   files as bytes.

   The order is part of PRUNER_MODULE_ABI: a type comes in at the end, which a user of a module
   without it does not notice. */
#ifndef PRUNER_DTYPE_H_
#define PRUNER_DTYPE_H_

#define PRUNER_DTYPES(ROW)                                                       \
  ROW(FLOAT32, kFloat32, "float32", kFloat, 32, 23, 1, "<f4")                    \
  ROW(FLOAT16, kFloat16, "float16", kFloat, 16, 10, 10, "<f2")                   \
  ROW(INT64, kInt64, "int64", kInt, 64, 0, 7, "<i8")                             \
  ROW(INT32, kInt32, "int32", kInt, 32, 0, 6, "<i4")                             \
  ROW(INT8, kInt8, "int8", kInt, 8, 0, 3, "|i1")                                 \
  ROW(BOOL, kBool, "bool", kBool, 8, 0, 9, "|b1")                                \
  ROW(UINT8, kUInt8, "uint8", kUInt, 8, 0, 2, "|u1")                             \
  ROW(BFLOAT16, kBFloat16, "bfloat16", kFloat, 16, 7, 16, "<V2")                 \
  ROW(FLOAT64, kFloat64, "float64", kFloat, 64, 52, 11, "<f8")                   \
  ROW(UINT16, kUInt16, "uint16", kUInt, 16, 0, 4, "<u2")                         \
  ROW(INT16, kInt16, "int16", kInt, 16, 0, 5, "<i2")                             \
  ROW(UINT32, kUInt32, "uint32", kUInt, 32, 0, 12, "<u4")                        \
  ROW(UINT64, kUInt64, "uint64", kUInt, 64, 0, 13, "<u8")                        \
  ROW(FLOAT8E4M3FN, kFloat8E4M3FN, "float8e4m3fn", kCode, 8, 3, 17, "|u1")       \
  ROW(FLOAT8E4M3FNUZ, kFloat8E4M3FNUZ, "float8e4m3fnuz", kCode, 8, 3, 18, "|u1") \
  ROW(FLOAT8E5M2, kFloat8E5M2, "float8e5m2", kCode, 8, 2, 19, "|u1")             \
  ROW(FLOAT8E5M2FNUZ, kFloat8E5M2FNUZ, "float8e5m2fnuz", kCode, 8, 2, 20, "|u1") \
  ROW(UINT4, kUInt4, "uint4", kUInt, 4, 0, 21, "|u1")                            \
  ROW(INT4, kInt4, "int4", kInt, 4, 0, 22, "|i1")                                \
  ROW(FLOAT4E2M1, kFloat4E2M1, "float4e2m1", kCode, 4, 1, 23, "|u1")             \
  ROW(FLOAT8E8M0, kFloat8E8M0, "float8e8m0", kCode, 8, 0, 24, "|u1")             \
  ROW(UINT2, kUInt2, "uint2", kUInt, 2, 0, 25, "|u1")                            \
  ROW(INT2, kInt2, "int2", kInt, 2, 0, 26, "|i1")

#define PRUNER_DTYPE_NAME(abi, cpp, text, kind, bits, fraction, onnx, numpy) PRUNER_##abi,
typedef enum { PRUNER_DTYPES(PRUNER_DTYPE_NAME) PRUNER_DTYPE_COUNT } PrunerDType;
#undef PRUNER_DTYPE_NAME

#endif /* PRUNER_DTYPE_H_ */
