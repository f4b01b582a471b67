// PASSES: choose-kernels
// TARGET: gpu
//
// The schedule of a softmax: a group of threads for a row, which shares all three sweeps. Elements
// that no other thread needs stay in registers, four neighbours of each thread; what is one number
// for the row every thread has.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %{{.*}} = 0 to 4096 {
// CHECK:       polyblocks.schedule = {barriers = [], copies = [], distributed = [
// CHECK-SAME:    {lead = 0 : i64, loop = 1 : i64, order = [1], pitch = 0 : i64, width = 4 : i64},
// CHECK-SAME:    {lead = 0 : i64, loop = 5 : i64, order = [5], pitch = 0 : i64, width = 4 : i64},
// CHECK-SAME:    {lead = 0 : i64, loop = 9 : i64, order = [9], pitch = 0 : i64, width = 4 : i64}],
// CHECK-SAME:    group = 32 : i64, groups = 8 : i64, kernel = "kernel", order = [0],
// CHECK-SAME:    places = ["distributed registers", "private"],
// CHECK-SAME:    predicted = {compute_seconds = {{.*}}, predicted_seconds = {{.*}}},
// CHECK-SAME:    resident = 4 : i64, strided = false, width = 1 : i64}
func.func @main(%a: memref<4096x1000xf32>, %b: memref<4096x1000xf32>) {
  affine.for %i = 0 to 4096 {
    %row = memref.alloca() : memref<1000xf32>
    %top = memref.alloca() : memref<1xf32>
    %low = arith.constant 0xFF800000 : f32
    %zero = arith.constant 0.0 : f32
    %m = affine.for %j = 0 to 1000 iter_args(%t = %low) -> (f32) {
      %x = affine.load %a[%i, %j] : memref<4096x1000xf32>
      affine.store %x, %row[%j] : memref<1000xf32>
      %y = arith.maximumf %x, %t : f32
      affine.yield %y : f32
    }
    affine.store %m, %top[0] : memref<1xf32>
    %s = affine.for %j = 0 to 1000 iter_args(%t = %zero) -> (f32) {
      %x = affine.load %row[%j] : memref<1000xf32>
      %n = affine.load %top[0] : memref<1xf32>
      %d = arith.subf %x, %n : f32
      %e = math.exp %d : f32
      affine.store %e, %row[%j] : memref<1000xf32>
      %y = arith.addf %e, %t fastmath<reassoc> : f32
      affine.yield %y : f32
    }
    affine.for %j = 0 to 1000 {
      %x = affine.load %row[%j] : memref<1000xf32>
      %y = arith.divf %x, %s : f32
      affine.store %y, %b[%i, %j] : memref<4096x1000xf32>
    }
  }
  return
}
