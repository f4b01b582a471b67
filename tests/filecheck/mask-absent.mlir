// PASSES: mask-absent
//
// Zeros that an operation stores around its own input are not multiplied by what a marked product
// has for its other factor: that is zero there. A product that is not marked stays as it is, and so
// does one with a constant. No mark is left.

// CHECK-LABEL: func.func @main
// CHECK-NOT:     polyblocks.absent
// CHECK:         affine.for %[[O:.*]] = 0 to 10 {
// CHECK:           %[[A:.*]] = affine.load %{{.*}}[%[[O]]]
// CHECK:           %[[W:.*]] = affine.load %arg1[0]
// CHECK:           %[[IN:.*]] = arith.cmpi ult, %{{.*}}, %c8
// CHECK:           %[[M:.*]] = arith.select %[[IN]], %[[W]], %{{.*}} : f32
// CHECK:           arith.mulf %[[A]], %[[M]] fastmath<reassoc,contract> : f32
// CHECK:           affine.store %{{.*}}, %arg2[%[[O]]]
// CHECK:         affine.for %{{.*}} = 0 to 10 {
// CHECK-NOT:       arith.select
// CHECK:           affine.store %{{.*}}, %arg3
// CHECK:         affine.for %{{.*}} = 0 to 10 {
// CHECK-NOT:       arith.select
// CHECK:           affine.store %{{.*}}, %arg4
// CHECK-NOT:     polyblocks.absent

module {
  func.func @main(%x: memref<8xf32>, %w: memref<1xf32>, %y: memref<10xf32>, %z: memref<10xf32>, %u: memref<10xf32>) {
    %p = memref.alloc() : memref<10xf32>
    affine.for %i = 0 to 10 {
      %none = arith.constant 0.0 : f32
      affine.store %none, %p[%i] {polyblocks.padding = array<i64: 1>} : memref<10xf32>
    }
    affine.for %i = 0 to 8 {
      %v = affine.load %x[%i] : memref<8xf32>
      affine.store %v, %p[%i + 1] : memref<10xf32>
    }
    affine.for %o = 0 to 10 {
      %zero = arith.constant 0.0 : f32
      %a = affine.load %p[%o] {polyblocks.padding = array<i64: 1>} : memref<10xf32>
      %b = affine.load %w[0] : memref<1xf32>
      %t = arith.mulf %a, %b fastmath<reassoc,contract> {polyblocks.absent} : f32
      %s = arith.addf %zero, %t fastmath<reassoc,contract> : f32
      affine.store %s, %y[%o] : memref<10xf32>
    }
    affine.for %o = 0 to 10 {
      %zero = arith.constant 0.0 : f32
      %a = affine.load %p[%o] {polyblocks.padding = array<i64: 1>} : memref<10xf32>
      %b = affine.load %w[0] : memref<1xf32>
      %t = arith.mulf %a, %b fastmath<reassoc,contract> : f32
      %s = arith.addf %zero, %t fastmath<reassoc,contract> : f32
      affine.store %s, %z[%o] : memref<10xf32>
    }
    affine.for %o = 0 to 10 {
      %zero = arith.constant 0.0 : f32
      %c = arith.constant 2.0 : f32
      %a = affine.load %p[%o] {polyblocks.padding = array<i64: 1>} : memref<10xf32>
      %t = arith.mulf %a, %c fastmath<reassoc,contract> {polyblocks.absent} : f32
      %s = arith.addf %zero, %t fastmath<reassoc,contract> : f32
      affine.store %s, %u[%o] : memref<10xf32>
    }
    return
  }
}
