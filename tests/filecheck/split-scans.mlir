// PASSES: split-scans
//
// Thirty-two parts for eight threads: reduced, scanned in short, scanned.

// CHECK-LABEL: @main
// CHECK:         affine.for %[[C:.*]] = 0 to 32 {
// CHECK:           %[[P:.*]] = affine.for %[[K:.*]] = 0 to min #{{.*}}(%[[C]]) iter_args(%{{.*}} = %{{.*}}) -> (f64) {
// CHECK:             affine.load %arg0[%[[C]] * 31296 + %[[K]]]
// CHECK-NOT:         affine.store
// CHECK:             affine.yield
// CHECK:           affine.store %[[P]], %[[TOTALS:.*]][%[[C]]]
// CHECK:         affine.for %[[C:.*]] = 0 to 32 iter_args(%[[S:.*]] = %{{.*}}) -> (f64) {
// CHECK-NEXT:      affine.store %[[S]], %[[STARTS:.*]][%[[C]]]
// CHECK-NEXT:      affine.load %[[TOTALS]][%[[C]]]
// CHECK:         affine.store %{{.*}}, %arg2[]
// CHECK:         affine.for %[[C:.*]] = 0 to 32 {
// CHECK:           %[[S:.*]] = affine.load %[[STARTS]][%[[C]]]
// CHECK:           affine.for %[[K:.*]] = 0 to min #{{.*}}(%[[C]]) iter_args(%{{.*}} = %[[S]]) -> (f64) {
// CHECK:             affine.store %{{.*}}, %arg1[%[[C]] * 31296 + %[[K]]]
//
// A short one stays whole, and so do rows enough for all threads.
//
// CHECK:         affine.for %{{.*}} = 0 to 100 iter_args
// CHECK:         affine.for %{{.*}} = 0 to 100 {
// CHECK:           affine.for %{{.*}} = 0 to 10000 iter_args
func.func @main(%x: memref<1001443xf64>, %out: memref<1001443xf64>, %last: memref<f64>,
                %rows: memref<100x10000xf64>, %sums: memref<100x10000xf64>) {
  %z = arith.constant 2.0 : f64
  %e = affine.for %k = 0 to 1001443 iter_args(%a = %z) -> (f64) {
    %b = affine.load %x[%k] : memref<1001443xf64>
    %t = arith.addf %a, %b fastmath<reassoc> : f64
    affine.store %t, %out[%k] : memref<1001443xf64>
    affine.yield %t : f64
  }
  affine.store %e, %last[] : memref<f64>
  %f = affine.for %k = 0 to 100 iter_args(%a = %z) -> (f64) {
    %b = affine.load %x[%k] : memref<1001443xf64>
    %t = arith.addf %a, %b fastmath<reassoc> : f64
    affine.store %t, %out[%k] : memref<1001443xf64>
    affine.yield %t : f64
  }
  affine.store %f, %last[] : memref<f64>
  affine.for %i = 0 to 100 {
    %g = affine.for %k = 0 to 10000 iter_args(%a = %z) -> (f64) {
      %b = affine.load %rows[%i, %k] : memref<100x10000xf64>
      %t = arith.addf %a, %b fastmath<reassoc> : f64
      affine.store %t, %sums[%i, %k] : memref<100x10000xf64>
      affine.yield %t : f64
    }
  }
  func.return
}
