// PASSES: choose-kernels,stage-operands,emit-kernels
// TARGET: gpu
//
// A product some of whose operands are zeros that are nowhere in memory: a copy loads 16 bytes where
// its conditions hold, and has zeros elsewhere. The other operand is loaded without asking.

// CHECK:       gpu.func @kernel
// CHECK-DAG:     %[[X:.*]] = memref.reinterpret_cast %arg0 to offset: [0], sizes: [32768], strides: [1]
// CHECK-DAG:     %[[W:.*]] = memref.reinterpret_cast %arg1 to offset: [0], sizes: [98304], strides: [1]
// CHECK:         %[[LOW:.*]] = arith.cmpi sge, %{{.*}}, %{{.*}} : i32
// CHECK:         %[[HIGH:.*]] = arith.cmpi sle, %{{.*}}, %{{.*}} : i32
// CHECK-NEXT:    %[[BOTH:.*]] = arith.andi %[[LOW]], %[[HIGH]] : i1
// CHECK:         scf.if %[[BOTH]] -> (vector<8xf16>) {
// CHECK:           vector.load %[[X]]
// CHECK:         } else {
// CHECK-NEXT:      scf.yield %{{.*}} : vector<8xf16>
// CHECK-NEXT:    }
// CHECK:         vector.load %[[W]]
// CHECK-NOT:     scf.if
// CHECK:         vector.load %[[W]]
// CHECK:         llvm.call_intrinsic "llvm.imaginary.multiply"
func.func @main(%a: memref<512x64xf16>, %b: memref<512x192xf16>, %c: memref<512x512xf16>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 512 {
    affine.for %j = 0 to 512 {
      %s = affine.for %k = 0 to 3 iter_args(%t = %zero) -> (f32) {
        %r = affine.for %l = 0 to 64 iter_args(%u = %t) -> (f32) {
          %x = affine.if affine_set<(d0, d1) : (d0 + d1 - 1 >= 0, -d0 - d1 + 512 >= 0)>(%i, %k) -> f16 {
            %y = affine.load %a[%i + %k - 1, %l] : memref<512x64xf16>
            affine.yield %y : f16
          } else {
            %none = arith.constant 0.0 : f16
            affine.yield %none : f16
          }
          %y = affine.load %b[%j, %k * 64 + %l] : memref<512x192xf16>
          %g = arith.extf %x : f16 to f32
          %h = arith.extf %y : f16 to f32
          %m = arith.mulf %g, %h fastmath<reassoc,contract> : f32
          %w = arith.addf %u, %m fastmath<reassoc,contract> : f32
          affine.yield %w : f32
        }
        affine.yield %r : f32
      }
      %h = arith.truncf %s : f32 to f16
      affine.store %h, %c[%i, %j] : memref<512x512xf16>
    }
  }
  return
}
