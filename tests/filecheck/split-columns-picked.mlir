// PASSES: classify-nests,split-columns
// ARCH: x86-64-v3
//
// The score of each row's class is the sum of a select over the columns, taken with the sum of
// exponentials, block by block: nothing needs all scores. A score of -0 stays -0 when -0 is added.

// CHECK-LABEL: func.func @main
// CHECK-SAME:    %[[T:[a-z0-9]+]]: memref<64xi64>
// CHECK-NOT:     memref<64x40000xf32>
// CHECK:         affine.for %[[B:.*]] = 0 to [[BLOCKS:[0-9]+]] {
// CHECK:           affine.store %{{.*}}, %[[ALL:.*]][%[[B]], %{{.*}}, %{{.*}}] : memref<[[BLOCKS]]x64x[[LENGTH:[0-9]+]]xf32>
// CHECK:         affine.for %[[B:.*]] = 0 to [[BLOCKS]] {
// CHECK:           arith.maximumf
// CHECK:         affine.for %[[B:.*]] = 0 to [[BLOCKS]] {
// CHECK-NEXT:      affine.for %[[I:.*]] = 0 to 64 {
// CHECK:             %[[CLASS:.*]] = affine.load %[[T]][%[[I]]]
// CHECK:             arith.index_cast %{{.*}} : index to i32
// CHECK:             %[[START:.*]] = arith.constant -0.000000e+00 : f32
// CHECK:             affine.for %[[J:.*]] = 0 to [[LENGTH]] iter_args({{.*}}%[[START]]
// CHECK:               math.exp
// CHECK:               affine.apply {{.*}}(%[[B]], %[[J]])
// CHECK:               %[[NOTHING:.*]] = arith.constant -0.000000e+00 : f32
// CHECK:               %[[SAME:.*]] = arith.cmpi eq
// CHECK:               arith.select %[[SAME]], %{{.*}}, %[[NOTHING]] : f32
// CHECK-NOT:     memref.load
// CHECK:         cf.assert
// CHECK-NOT:     memref.load
// CHECK:         return
func.func @main(%x: memref<64x128xf32>, %y: memref<40000x128xf32>, %t: memref<64xi64>, %out: memref<64xf32>) {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %classes = arith.constant 40000 : index
  %scores = memref.alloc() : memref<64x40000xf32>
  %max = memref.alloc() : memref<64xf32>
  %sum = memref.alloc() : memref<64xf32>
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 40000 {
      %d = affine.for %k = 0 to 128 iter_args(%s = %zero) -> (f32) {
        %a = affine.load %x[%i, %k] : memref<64x128xf32>
        %b = affine.load %y[%j, %k] : memref<40000x128xf32>
        %p = arith.mulf %a, %b fastmath<reassoc,contract> : f32
        %u = arith.addf %s, %p fastmath<reassoc,contract> : f32
        affine.yield %u : f32
      }
      affine.store %d, %scores[%i, %j] : memref<64x40000xf32>
    }
  }
  affine.for %i = 0 to 64 {
    %m = affine.for %j = 0 to 40000 iter_args(%a = %low) -> (f32) {
      %s = affine.load %scores[%i, %j] : memref<64x40000xf32>
      %n = arith.maximumf %a, %s : f32
      affine.yield %n : f32
    }
    affine.store %m, %max[%i] : memref<64xf32>
  }
  affine.for %i = 0 to 64 {
    %r = affine.for %j = 0 to 40000 iter_args(%a = %zero) -> (f32) {
      %s = affine.load %scores[%i, %j] : memref<64x40000xf32>
      %m = affine.load %max[%i] : memref<64xf32>
      %d = arith.subf %s, %m fastmath<reassoc,contract> : f32
      %e = math.exp %d : f32
      %u = arith.addf %a, %e fastmath<reassoc,contract> : f32
      affine.yield %u : f32
    }
    affine.store %r, %sum[%i] : memref<64xf32>
  }
  affine.for %i = 0 to 64 {
    %c = affine.load %t[%i] : memref<64xi64>
    %j = arith.index_cast %c : i64 to index
    %inside = arith.cmpi slt, %j, %classes : index
    cf.assert %inside, "index must be smaller than dim size"
    %s = memref.load %scores[%i, %j] : memref<64x40000xf32>
    %m = affine.load %max[%i] : memref<64xf32>
    %e = affine.load %sum[%i] : memref<64xf32>
    %d = arith.subf %s, %m fastmath<reassoc,contract> : f32
    %l = math.log %e : f32
    %r = arith.subf %d, %l fastmath<reassoc,contract> : f32
    affine.store %r, %out[%i] : memref<64xf32>
  }
  return
}
