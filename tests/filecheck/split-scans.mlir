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
// CHECK-NEXT:      affine.load %[[TOTALS]][%[[C]]]
// CHECK-NEXT:      %[[T:.*]] = arith.addf %[[S]]
// CHECK-NEXT:      affine.store %[[T]], %[[ENDS:.*]][%[[C]]]
// CHECK:         affine.store %{{.*}}, %arg2[]
// CHECK:         affine.for %[[C:.*]] = 0 to 32 {
// CHECK:           affine.load %[[ENDS]][(%[[C]] + {{[0-9]+}}) mod {{[0-9]+}}]
// CHECK:           %[[S:.*]] = arith.select
// CHECK:           affine.for %[[K:.*]] = 0 to min #{{.*}}(%[[C]]) iter_args(%{{.*}} = %[[S]]) -> (f64) {
// CHECK:             affine.store %{{.*}}, %arg1[%[[C]] * 31296 + %[[K]]]
//
// A running maximum and its place, the later of equal ones: parts begin with what gives way to all.
//
// CHECK:         affine.for %{{.*}} = 0 to 32 {
// CHECK:           affine.for %{{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (f32, i64) {
// CHECK:         affine.for %{{.*}} = 0 to 32 iter_args(%[[BEST:.*]] = %{{.*}}, %[[PLACE:.*]] = %{{.*}}) -> (f32, i64) {
// CHECK:           arith.cmpf uge
// CHECK:           arith.select %{{.*}}, %{{.*}}, %[[BEST]]
// CHECK:           arith.select %{{.*}}, %{{.*}}, %[[PLACE]]
// CHECK:         affine.for %{{.*}} = 0 to 32 {
// CHECK:           affine.for %{{.*}} iter_args
// CHECK:             affine.store %{{.*}}, %arg6
//
// A short one stays whole, and so do rows enough for all threads.
//
// CHECK:         affine.for %{{.*}} = 0 to 100 iter_args
// CHECK:         affine.for %{{.*}} = 0 to 100 {
// CHECK:           affine.for %{{.*}} = 0 to 10000 iter_args
func.func @main(%x: memref<1001443xf64>, %out: memref<1001443xf64>, %last: memref<f64>,
                %rows: memref<100x10000xf64>, %sums: memref<100x10000xf64>,
                %y: memref<1001443xf32>, %places: memref<1001443xi64>) {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0 : i64
  %z = arith.constant 2.0 : f64
  %e = affine.for %k = 0 to 1001443 iter_args(%a = %z) -> (f64) {
    %b = affine.load %x[%k] : memref<1001443xf64>
    %t = arith.addf %a, %b fastmath<reassoc> : f64
    affine.store %t, %out[%k] : memref<1001443xf64>
    affine.yield %t : f64
  }
  affine.store %e, %last[] : memref<f64>
  affine.for %k = 0 to 1001443 iter_args(%best = %low, %place = %zero) -> (f32, i64) {
    %b = affine.load %y[%k] : memref<1001443xf32>
    %here = arith.index_cast %k : index to i64
    %take = arith.cmpf uge, %b, %best : f32
    %nan = arith.cmpf uno, %b, %b : f32
    %number = arith.cmpf ord, %best, %best : f32
    %may = arith.ori %nan, %number : i1
    %does = arith.andi %take, %may : i1
    %t = arith.select %does, %b, %best : f32
    %p = arith.select %does, %here, %place : i64
    affine.store %p, %places[%k] : memref<1001443xi64>
    affine.yield %t, %p : f32, i64
  }
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
