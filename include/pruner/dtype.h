/* The element types of tensors, a row each. Who asks for a property of a type finds it here: the
   compiler's own DType (src/tensor/dtype.h) and its names, sizes and conversions are made of these
   rows.

   ROW(ABI's name, C++'s name, text, kind, bytes, bits of the fraction, ONNX's number, numpy's code)

   Kinds: kFloat (IEEE's layout: sign, exponent, fraction), kInt (two's complement), kUInt, kBool (a
   byte, 0 or 1). ONNX's number is the one of TensorProto.DataType. numpy has no bfloat16; files
   have the code of ml_dtypes'. The order is part of PRUNER_MODULE_ABI. */
#ifndef PRUNER_DTYPE_H_
#define PRUNER_DTYPE_H_

#define PRUNER_DTYPES(ROW)                                    \
  ROW(FLOAT32, kFloat32, "float32", kFloat, 4, 23, 1, "<f4")  \
  ROW(FLOAT16, kFloat16, "float16", kFloat, 2, 10, 10, "<f2") \
  ROW(INT64, kInt64, "int64", kInt, 8, 0, 7, "<i8")           \
  ROW(INT32, kInt32, "int32", kInt, 4, 0, 6, "<i4")           \
  ROW(INT8, kInt8, "int8", kInt, 1, 0, 3, "|i1")              \
  ROW(BOOL, kBool, "bool", kBool, 1, 0, 9, "|b1")             \
  ROW(UINT8, kUInt8, "uint8", kUInt, 1, 0, 2, "|u1")          \
  ROW(BFLOAT16, kBFloat16, "bfloat16", kFloat, 2, 7, 16, "<V2")

#define PRUNER_DTYPE_NAME(abi, cpp, text, kind, bytes, fraction, onnx, numpy) PRUNER_##abi,
typedef enum { PRUNER_DTYPES(PRUNER_DTYPE_NAME) PRUNER_DTYPE_COUNT } PrunerDType;
#undef PRUNER_DTYPE_NAME

#endif /* PRUNER_DTYPE_H_ */
