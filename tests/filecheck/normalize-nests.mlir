// PASSES: normalize-nests
//
// The unit loop and the constant load go, the copy becomes loops, the dead nest disappears. Squares
// and cubes become products, a first power is its base, other powers stay.

// CHECK-LABEL: func.func @main
// CHECK-NOT:     memref.alloc
// CHECK:         affine.for %[[I:.*]] = 0 to 8 {
// CHECK-NOT:       affine.for
// CHECK:           %[[C:.*]] = arith.constant 2.500000e+00 : f32
// CHECK:           arith.mulf %{{.*}}, %[[C]]
// CHECK:         affine.for %[[J:.*]] = 0 to 8 {
// CHECK-NEXT:      %[[V:.*]] = affine.load %{{.*}}[%[[J]]]
// CHECK-NEXT:      affine.store %[[V]], %{{.*}}[%[[J]]]
// CHECK-NEXT:    }
// CHECK:         affine.for %{{.*}} = 0 to 8 {
// CHECK:           %[[X:.*]] = affine.load %arg0
// CHECK:           %[[S:.*]] = arith.mulf %[[X]], %[[X]] : f32
// CHECK:           %[[T:.*]] = arith.mulf %[[X]], %[[X]] : f32
// CHECK:           %[[U:.*]] = arith.mulf %[[T]], %[[X]] : f32
// CHECK:           math.powf %[[X]]
// CHECK-NOT:       math.powf
// CHECK-NOT:     affine.for
// CHECK-NOT:     memref.copy
memref.global "private" constant @w : memref<2xf32> = dense<[1.5, 2.5]>
func.func @main(%a: memref<8xf32>, %b: memref<8xf32>, %c: memref<8xf32>,
                %d: memref<8xf32>) {
  %w = memref.get_global @w : memref<2xf32>
  affine.for %i = 0 to 8 {
    affine.for %u = 0 to 1 {
      %x = affine.load %a[%i] : memref<8xf32>
      %k = affine.load %w[%u + 1] : memref<2xf32>
      %y = arith.mulf %x, %k : f32
      affine.store %y, %b[%i] : memref<8xf32>
    }
  }
  %dead = memref.alloc() : memref<8xf32>
  affine.for %i = 0 to 8 {
    %x = affine.load %a[%i] : memref<8xf32>
    affine.store %x, %dead[%i] : memref<8xf32>
  }
  memref.copy %b, %c : memref<8xf32> to memref<8xf32>
  %two = arith.constant 2.0 : f32
  %one = arith.constant 1.0 : f32
  %three = arith.constant 3.0 : f32
  %some = arith.constant 2.5 : f32
  affine.for %i = 0 to 8 {
    %x = affine.load %a[%i] : memref<8xf32>
    %r = math.powf %x, %one : f32
    %s = math.powf %r, %two : f32
    %u = math.powf %x, %three : f32
    %v = math.powf %x, %some : f32
    %y = arith.addf %s, %u : f32
    %z = arith.addf %y, %v : f32
    affine.store %z, %d[%i] : memref<8xf32>
  }
  return
}
