// PASSES: choose-kernels,stage-operands,emit-kernels
// TARGET: bounded gpu
//
// A convolution whose channels are apart, in one dimension, on a chip whose loads find zeros beyond
// the end of a buffer. Three tiles are written out, after which steps have the same places in
// windows again: what is the same for all threads of a place is an operand of its own, and a thread
// that is beyond the image loads from beyond the buffer. There is no branch around any load.

// CHECK:       gpu.func @kernel
// CHECK-SAME:    workgroup(%[[A:.*]] : memref<3x{{[0-9]+}}x{{[0-9]+}}xf16, #gpu.address_space<workgroup>>, %[[B:.*]] : memref<3x{{[0-9]+}}x{{[0-9]+}}xf16, #gpu.address_space<workgroup>>)
// CHECK:         %[[BYTES:.*]] = arith.constant 33554432 : i64
// CHECK:         %[[IMAGE:.*]] = llvm.call_intrinsic "llvm.imaginary.describe"(%{{.*}}, %{{.*}}, %[[BYTES]], %{{.*}}) : (!llvm.ptr<1>, i16, i64, i32) -> !llvm.ptr<7>
// CHECK:         %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-NOT:     scf.if
// CHECK:         scf.for
// CHECK-SAME:      iter_args
// CHECK-NOT:       scf.if
// CHECK-NOT:       arith.remui {{.*}}, %c3
// CHECK:           %[[BEYOND:.*]] = arith.constant -2147483648 : i32
// CHECK:           %[[PLACE:.*]] = arith.select %{{.*}}, %{{.*}}, %[[BEYOND]] : i32
// CHECK-NEXT:      llvm.call_intrinsic "llvm.imaginary.load"(%[[IMAGE]], %[[PLACE]], %{{.*}}, %{{.*}}) : (!llvm.ptr<7>, i32, i32, i32) -> f16
// CHECK-NOT:       scf.if
// CHECK:           llvm.call_intrinsic "llvm.imaginary.multiply"
// CHECK:           vector.from_elements {{.*}} : vector<8xf16>
// CHECK:           vector.store {{.*}}, %[[B]]
// CHECK:           gpu.barrier
// CHECK:           llvm.call_intrinsic "llvm.imaginary.load"
// CHECK:           gpu.barrier
// CHECK:           llvm.call_intrinsic "llvm.imaginary.load"
// CHECK:           vector.store {{.*}}, %[[B]][%[[ZERO]],
// CHECK:           gpu.barrier
// CHECK-NOT:       scf.if
// CHECK:           scf.yield
func.func @main(%a: memref<256x65536xf16>, %w: memref<128x256x3xf16>, %c: memref<128x65536xf16>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 128 {
    affine.for %j = 0 to 65536 {
      %s = affine.for %k = 0 to 256 iter_args(%r = %zero) -> (f32) {
        %t = affine.for %l = 0 to 3 iter_args(%q = %r) -> (f32) {
          %x = affine.load %w[%i, %k, %l] : memref<128x256x3xf16>
          %y = affine.if affine_set<(d0, d1) : (d0 + d1 - 1 >= 0, -d0 - d1 + 65536 >= 0)>(%j, %l) -> f16 {
            %y0 = affine.load %a[%k, %j + %l - 1] : memref<256x65536xf16>
            affine.yield %y0 : f16
          } else {
            %none = arith.constant 0.0 : f16
            affine.yield %none : f16
          }
          %u = arith.extf %x : f16 to f32
          %v = arith.extf %y : f16 to f32
          %z = arith.mulf %u, %v fastmath<reassoc,contract> : f32
          %p = arith.addf %q, %z fastmath<reassoc,contract> : f32
          affine.yield %p : f32
        }
        affine.yield %t : f32
      }
      %h = arith.truncf %s : f32 to f16
      affine.store %h, %c[%i, %j] : memref<128x65536xf16>
    }
  }
  return
}
