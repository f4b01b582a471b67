// PASSES: split-masks
// ARCH: x86-64-v4
//
// A band of a matrix loads whole lines around itself, and zeros are stored on both sides.

// CHECK-DAG:   #[[LOW:.*]] = affine_map<(d0) -> (((d0 - 3) floordiv 16) * 16)>
// CHECK-DAG:   #[[FIRST:.*]] = affine_map<(d0) -> (0, ((d0 - 3) floordiv 16) * 16)>
// CHECK-DAG:   #[[END:.*]] = affine_map<(d0) -> (((d0 + 21) floordiv 16) * 16, 4096)>
// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[I:.*]] = 0 to 4096 {
// CHECK:           affine.for %[[J:.*]] = 0 to {{.*}}#[[LOW]]
// CHECK-NOT:         affine.load
// CHECK:             affine.store %{{.*}}, %arg1[%[[I]], %[[J]]]
// CHECK:           affine.for %[[J:.*]] = max #[[FIRST]](%[[I]]) to min #[[END]](%[[I]]) {
// CHECK:             affine.load %arg0[%[[I]], %[[J]]]
// CHECK:             arith.select
// CHECK:           affine.for %[[J:.*]] = max #{{.*}}(%[[I]]) to 4096 {
// CHECK-NOT:         affine.load
// CHECK:             affine.store %{{.*}}, %arg1[%[[I]], %[[J]]]
func.func @main(%a: memref<4096x4096xf32>, %b: memref<4096x4096xf32>) {
  affine.for %i = 0 to 4096 {
    affine.for %j = 0 to 4096 {
      %zero = arith.constant 0.0 : f32
      %most = arith.constant 3 : index
      %least = arith.constant -5 : index
      %distance = affine.apply affine_map<(d0, d1) -> (d0 - d1)>(%i, %j)
      %low = arith.cmpi sle, %distance, %most : index
      %high = arith.cmpi sge, %distance, %least : index
      %inside = arith.andi %low, %high : i1
      %x = affine.load %a[%i, %j] : memref<4096x4096xf32>
      %y = arith.select %inside, %x, %zero : f32
      affine.store %y, %b[%i, %j] : memref<4096x4096xf32>
    }
  }
  return
}
