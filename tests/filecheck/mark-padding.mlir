// PASSES: mark-padding
//
// A convolution that has padded its input: the store of the zeros and its own load have the number
// of the padding. Another load does not. A buffer in which the program has put zeros beside those
// of the convolution is not marked; neither is one of which the frontend says nothing.

// CHECK-LABEL: func.func @main
// CHECK:         affine.store %{{.*}}, %[[P:\w+]][%{{.*}}] {polyblocks.padding = array<i64: 1>} : memref<10xf32>
// CHECK:         affine.store %{{.*}}, %[[P]][%{{.*}} + 1] : memref<10xf32>
// CHECK:         affine.load %[[P]][%{{.*}}] {polyblocks.padding = array<i64: 1>} : memref<10xf32>
// CHECK:         arith.extf
// CHECK:         arith.mulf %{{.*}}, %{{.*}} : f64
// CHECK:         affine.load %[[P]][%{{.*}}] : memref<10xf32>
// CHECK:         affine.store %{{.*}}, %alloc_0[%{{.*}}] : memref<10xf32>
// CHECK:         affine.store %{{.*}}, %alloc_0[%{{.*}} + 2] : memref<10xf32>
// CHECK:         affine.load %alloc_0[%{{.*}}] : memref<10xf32>
// CHECK:         affine.store %{{.*}}, %[[L:\w+]][%{{.*}}] {polyblocks.padding = array<i64: 2>} : memref<15xf32>
// CHECK:         affine.store %{{.*}}, %[[L]][%{{.*}} * 2] : memref<15xf32>
// CHECK:         affine.load %[[L]][%{{.*}}] {polyblocks.padding = array<i64: 2>} : memref<15xf32>
// CHECK-NOT:     polyblocks.padded

func.func @main(%x: memref<8xf32>, %w: memref<1xf64>, %y: memref<10xf64>, %z: memref<10xf32>, %v: memref<10xf32>, %u: memref<15xf32>) {
  %zero = arith.constant 0.0 : f32
  %p = memref.alloc() : memref<10xf32>
  affine.for %i = 0 to 10 {
    affine.store %zero, %p[%i] : memref<10xf32>
  }
  affine.for %i = 0 to 8 {
    %0 = affine.load %x[%i] : memref<8xf32>
    affine.store %0, %p[%i + 1] : memref<10xf32>
  }
  affine.for %i = 0 to 10 {
    %0 = affine.load %p[%i] : memref<10xf32>
    %1 = arith.extf %0 : f32 to f64
    %2 = affine.load %w[0] : memref<1xf64>
    %3 = arith.mulf %1, %2 {polyblocks.padded = {first = array<i64: 1>, size = array<i64: 8>, step = array<i64: 1>}} : f64
    affine.store %3, %y[%i] : memref<10xf64>
  }
  affine.for %i = 0 to 10 {
    %0 = affine.load %p[%i] : memref<10xf32>
    affine.store %0, %z[%i] : memref<10xf32>
  }
  %q = memref.alloc() : memref<10xf32>
  affine.for %i = 0 to 10 {
    affine.store %zero, %q[%i] : memref<10xf32>
  }
  affine.for %i = 0 to 6 {
    %0 = affine.load %x[%i] : memref<8xf32>
    affine.store %0, %q[%i + 2] : memref<10xf32>
  }
  affine.for %i = 0 to 10 {
    %0 = affine.load %q[%i] : memref<10xf32>
    %1 = arith.mulf %0, %0 {polyblocks.padded = {first = array<i64: 1>, size = array<i64: 8>, step = array<i64: 1>}} : f32
    affine.store %1, %v[%i] : memref<10xf32>
  }
  %l = memref.alloc() : memref<15xf32>
  affine.for %i = 0 to 15 {
    affine.store %zero, %l[%i] : memref<15xf32>
  }
  affine.for %i = 0 to 8 {
    %0 = affine.load %x[%i] : memref<8xf32>
    affine.store %0, %l[%i * 2] : memref<15xf32>
  }
  affine.for %i = 0 to 15 {
    %0 = affine.load %l[%i] : memref<15xf32>
    %1 = arith.mulf %0, %0 {polyblocks.padded = {first = array<i64: 0>, size = array<i64: 8>, step = array<i64: 2>}} : f32
    affine.store %1, %u[%i] : memref<15xf32>
  }
  return
}
