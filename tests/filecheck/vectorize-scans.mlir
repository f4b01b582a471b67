// PASSES: vectorize-nests
//
// The eight lanes of one register are scanned in three steps; what comes before them is added at
// the end, and the last lane goes on in all lanes. Two iterations are left.

// CHECK-LABEL: @main
// CHECK:         %[[FIRST:.*]] = vector.broadcast %{{.*}} : f64 to vector<8xf64>
// CHECK:         %[[E:.*]] = scf.for {{.*}} iter_args(%[[C:.*]] = %[[FIRST]]) -> (vector<8xf64>) {
// CHECK:           %[[X:.*]] = arith.extf %{{.*}} : vector<8xf32> to vector<8xf64>
// CHECK:           vector.shuffle %{{.*}}, %[[X]] [0, 8, 9, 10, 11, 12, 13, 14]
// CHECK:           vector.shuffle %{{.*}} [0, 1, 8, 9, 10, 11, 12, 13]
// CHECK:           vector.shuffle %{{.*}}, %[[V:.*]] [0, 1, 2, 3, 8, 9, 10, 11]
// CHECK-NEXT:      %[[P:.*]] = arith.addf %{{.*}}, %[[V]]
// CHECK-NEXT:      %[[Y:.*]] = arith.addf %[[C]], %[[P]]
// CHECK-NEXT:      %[[L:.*]] = vector.shuffle %[[P]], %[[P]] [7, 7, 7, 7, 7, 7, 7, 7]
// CHECK-NEXT:      %[[T:.*]] = arith.addf %[[C]], %[[L]]
// CHECK:           arith.truncf %[[Y]]
// CHECK:           scf.yield %[[T]] : vector<8xf64>
// CHECK:         vector.extract %[[E]][0]
// CHECK:         scf.for
// CHECK-NOT:       vector.load
// CHECK:           memref.store
//
// Without leave to reassociate the order stays, and so it does for products of full range.
//
// CHECK-NOT:     vector.shuffle
// CHECK:         return
func.func @main(%x: memref<4x90xf32>, %out: memref<4x90xf32>, %y: memref<4x90xf64>,
                %sums: memref<4x90xf64>, %products: memref<4x90xf64>) {
  %zero = arith.constant 0.0 : f64
  %one = arith.constant 1.0 : f64
  affine.for %i = 0 to 4 {
    %e = affine.for %k = 0 to 90 iter_args(%a = %zero) -> (f64) {
      %b = affine.load %x[%i, %k] : memref<4x90xf32>
      %w = arith.extf %b : f32 to f64
      %t = arith.addf %a, %w fastmath<reassoc> : f64
      %r = arith.truncf %t : f64 to f32
      affine.store %r, %out[%i, %k] : memref<4x90xf32>
      affine.yield %t : f64
    }
  }
  affine.for %i = 0 to 4 {
    %e = affine.for %k = 0 to 90 iter_args(%a = %zero) -> (f64) {
      %b = affine.load %y[%i, %k] : memref<4x90xf64>
      %t = arith.addf %a, %b : f64
      affine.store %t, %sums[%i, %k] : memref<4x90xf64>
      affine.yield %t : f64
    }
  }
  affine.for %i = 0 to 4 {
    %e = affine.for %k = 0 to 90 iter_args(%a = %one) -> (f64) {
      %b = affine.load %y[%i, %k] : memref<4x90xf64>
      %t = arith.mulf %a, %b fastmath<reassoc> : f64
      affine.store %t, %products[%i, %k] : memref<4x90xf64>
      affine.yield %t : f64
    }
  }
  func.return
}
