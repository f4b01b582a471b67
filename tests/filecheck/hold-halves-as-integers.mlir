// PASSES: hold-halves-as-integers
// ARCH: x86-64
//
// Selects, loop-carried values, memory, constants and functions; f32 stays. On this chip f16 too.

// CHECK:       memref.global "private" constant @w : memref<3xi16> = dense<[16256, -16320, 32704]>
// CHECK:       memref.global "private" constant @h : memref<2xi16> = dense<15872>
memref.global "private" constant @w : memref<3xbf16> = dense<[1.0, -3.0, 0x7FC0]>
memref.global "private" constant @h : memref<2xf16> = dense<1.5>

// CHECK-LABEL: func.func @main
// CHECK-SAME:  (%[[X:.*]]: memref<8xi16>, %[[P:.*]]: i1, %[[F:.*]]: f32) -> i16
// CHECK:         %[[C:.*]] = arith.constant 16256 : i16
// CHECK:         %[[R:.*]] = affine.for {{.*}} iter_args(%[[A:.*]] = %[[C]]) -> (i16) {
// CHECK:           %[[V:.*]] = affine.load %[[X]]
// CHECK:           %[[S:.*]] = arith.select %[[P]], %[[V]], %[[A]] : i16
// CHECK:           affine.yield %[[S]] : i16
// CHECK-NOT:     arith.bitcast
// CHECK:         call @other(%[[R]]) : (i16) -> i16
// CHECK:         arith.addf %[[F]], %[[F]] : f32
func.func @main(%x: memref<8xbf16>, %p: i1, %f: f32) -> bf16 {
  %one = arith.constant 1.0 : bf16
  %r = affine.for %i = 0 to 8 iter_args(%a = %one) -> (bf16) {
    %v = affine.load %x[%i] : memref<8xbf16>
    %s = arith.select %p, %v, %a : bf16
    affine.yield %s : bf16
  }
  %b = arith.bitcast %r : bf16 to i16
  %h = arith.bitcast %b : i16 to f16
  %o = func.call @other(%h) : (f16) -> f16
  %z = arith.addf %f, %f : f32
  return %r : bf16
}
// CHECK:       func.func private @other(i16) -> i16
func.func private @other(f16) -> f16
