// PASSES: vectorize-nests
// ARCH: x86-64-v4
//
// Sums and differences of neighbours, in their places: what every second access leaves out is moved
// by the others. Two vectors are loaded and put in order, two are put in order and stored.

// CHECK-LABEL: func.func @main
// CHECK:           scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step
// CHECK-DAG:         %[[A:.*]] = vector.load %{{.*}} : memref<512xf32>, vector<16xf32>
// CHECK-DAG:         %[[B:.*]] = vector.load %{{.*}} : memref<512xf32>, vector<16xf32>
// CHECK:             %[[EVEN:.*]] = vector.shuffle %[[A]], %[[B]] [0, 2, 4, {{.*}}, 28, 30]
// CHECK:             %[[ODD:.*]] = vector.shuffle %[[A]], %[[B]] [1, 3, 5, {{.*}}, 29, 31]
// CHECK:             %[[SUM:.*]] = arith.addf %[[EVEN]], %[[ODD]]
// CHECK:             %[[DIFFERENCE:.*]] = arith.subf %[[EVEN]], %[[ODD]]
// CHECK:             %[[LOW:.*]] = vector.shuffle %[[SUM]], %[[DIFFERENCE]] [0, 16, 1, 17, {{.*}}, 7, 23]
// CHECK:             %[[HIGH:.*]] = vector.shuffle %[[SUM]], %[[DIFFERENCE]] [8, 24, 9, 25, {{.*}}, 15, 31]
// CHECK:             vector.store %[[LOW]]
// CHECK:             vector.store %[[HIGH]]
// CHECK-NOT:         memref.load
//
// Six vectors of every sixth element are the halves of three pairs of vectors, and then the thirds
// of these: 6 and 12 shuffles.
//
// CHECK:           scf.for
// CHECK-COUNT-5:     vector.load %{{.*}} : memref<1536xf32>, vector<16xf32>
// CHECK:             vector.maskedload %{{.*}} : memref<1536xf32>
// CHECK-COUNT-18:    vector.shuffle
// CHECK-NOT:         vector.shuffle
// CHECK:         return
func.func @main(%x: memref<512xf32>, %out: memref<256x2xf32>, %six: memref<1536xf32>, %sums: memref<256xf32>) {
  affine.for %k = 0 to 1 {
    affine.for %i = 0 to 256 {
      %a = affine.load %x[%i * 2] : memref<512xf32>
      %b = affine.load %x[%i * 2 + 1] : memref<512xf32>
      %c = arith.addf %a, %b : f32
      affine.store %c, %out[%i, 0] : memref<256x2xf32>
      %d = arith.subf %a, %b : f32
      affine.store %d, %out[%i, 1] : memref<256x2xf32>
    }
  }
  affine.for %k = 0 to 1 {
    affine.for %i = 0 to 256 {
      %a = affine.load %six[%i * 6] : memref<1536xf32>
      %b = affine.load %six[%i * 6 + 1] : memref<1536xf32>
      %c = affine.load %six[%i * 6 + 4] : memref<1536xf32>
      %d = arith.addf %a, %b : f32
      %e = arith.addf %c, %d : f32
      affine.store %e, %sums[%i] : memref<256xf32>
    }
  }
  func.return
}
