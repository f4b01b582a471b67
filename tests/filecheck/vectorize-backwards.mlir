// PASSES: vectorize-nests
// ARCH: x86-64-v4
//
// An array that is read backwards is loaded forwards, from where the last lane is, and its lanes are
// exchanged; so is every second element of one. Of the last vector the lanes that count are the
// last ones of memory.

// CHECK-LABEL: func.func @main
// CHECK:           scf.for %[[I:.*]] =
// CHECK:             %[[V:.*]] = vector.load %arg0
// CHECK:             vector.shuffle %[[V]], %[[V]] [15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]
// CHECK:             %[[A:.*]] = vector.load %arg1
// CHECK:             %[[B:.*]] = vector.load %arg1
// CHECK:             vector.shuffle %[[A]], %[[B]] [0, 2, 4
// CHECK:             vector.store
// CHECK:           vector.maskedload %arg0
// CHECK:           vector.maskedstore
func.func @main(%a: memref<100xf32>, %b: memref<200xf32>, %c: memref<100xf32>) {
  affine.for %i = 0 to 99 {
    %x = affine.load %a[98 - %i] : memref<100xf32>
    %y = affine.load %b[196 - %i * 2] : memref<200xf32>
    %z = affine.load %b[197 - %i * 2] : memref<200xf32>
    %s = arith.addf %x, %y : f32
    %t = arith.mulf %s, %z : f32
    affine.store %t, %c[%i] : memref<100xf32>
  }
  return
}
