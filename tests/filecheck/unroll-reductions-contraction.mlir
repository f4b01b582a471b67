// PASSES: unroll-reductions
// ARCH: x86-64-v3
//
// What is summed up are products of rows and columns, which another nest computes: a contraction
// when nests have been fused, and its loop stays. A window of the same length is unrolled.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %{{.*}} = 0 to 8 iter_args
// CHECK:           affine.load %{{.*}} : memref<40x50x8xf32>
// CHECK:         affine.for %{{.*}} = 0 to 40 {
// CHECK-NOT:       iter_args
// CHECK-COUNT-8:   arith.addf
func.func @main(%a: memref<40x8xf32>, %b: memref<50x8xf32>, %c: memref<40x50xf32>,
                %d: memref<50x57xf32>, %e: memref<40x50xf32>) {
  %p = memref.alloc() : memref<40x50x8xf32>
  affine.for %i = 0 to 40 { affine.for %j = 0 to 50 { affine.for %k = 0 to 8 {
    %x = affine.load %a[%i, %k] : memref<40x8xf32>
    %y = affine.load %b[%j, %k] : memref<50x8xf32>
    %z = arith.subf %x, %y : f32
    affine.store %z, %p[%i, %j, %k] : memref<40x50x8xf32>
  } } }
  %q = memref.alloc() : memref<40x50x8xf32>
  affine.for %i = 0 to 40 { affine.for %j = 0 to 50 { affine.for %k = 0 to 8 {
    %x = affine.load %p[%i, %j, %k] : memref<40x50x8xf32>
    %z = math.absf %x : f32
    affine.store %z, %q[%i, %j, %k] : memref<40x50x8xf32>
  } } }
  affine.for %i = 0 to 40 { affine.for %j = 0 to 50 {
    %z = arith.constant 0.0 : f32
    %r = affine.for %k = 0 to 8 iter_args(%s = %z) -> (f32) {
      %x = affine.load %q[%i, %j, %k] : memref<40x50x8xf32>
      %t = arith.addf %s, %x : f32
      affine.yield %t : f32
    }
    affine.store %r, %c[%i, %j] : memref<40x50xf32>
  } }
  affine.for %i = 0 to 40 { affine.for %j = 0 to 50 {
    %z = arith.constant 0.0 : f32
    %r = affine.for %k = 0 to 8 iter_args(%s = %z) -> (f32) {
      %x = affine.load %d[%j, %i + %k] : memref<50x57xf32>
      %t = arith.addf %s, %x : f32
      affine.yield %t : f32
    }
    affine.store %r, %e[%i, %j] : memref<40x50xf32>
  } }
  return
}
