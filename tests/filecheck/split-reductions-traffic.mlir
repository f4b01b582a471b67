// PASSES: split-reductions
// ARCH: znver4
//
// A dot product that reads 512 KiB takes one core so long that starting another one pays; one of
// 128 KiB does not.

// CHECK-LABEL: func.func @main
// CHECK:         %[[PARTS:.*]] = memref.alloc()
// CHECK:         affine.store %{{.*}}, %[[PARTS]]
// CHECK:         affine.for %{{.*}} = 0 to 16384 iter_args
// CHECK-NOT:     memref.alloc
func.func @main(%a: memref<65536xf32>, %b: memref<65536xf32>, %c: memref<16384xf32>, %d: memref<16384xf32>, %r: memref<2xf32>) {
  %z = arith.constant 0.0 : f32
  %s = affine.for %i = 0 to 65536 iter_args(%acc = %z) -> (f32) {
    %x = affine.load %a[%i] : memref<65536xf32>
    %y = affine.load %b[%i] : memref<65536xf32>
    %p = arith.mulf %x, %y fastmath<reassoc,contract> : f32
    %t = arith.addf %acc, %p fastmath<reassoc,contract> : f32
    affine.yield %t : f32
  }
  affine.store %s, %r[0] : memref<2xf32>
  %u = affine.for %i = 0 to 16384 iter_args(%acc = %z) -> (f32) {
    %x = affine.load %c[%i] : memref<16384xf32>
    %y = affine.load %d[%i] : memref<16384xf32>
    %p = arith.mulf %x, %y fastmath<reassoc,contract> : f32
    %t = arith.addf %acc, %p fastmath<reassoc,contract> : f32
    affine.yield %t : f32
  }
  affine.store %u, %r[1] : memref<2xf32>
  return
}
