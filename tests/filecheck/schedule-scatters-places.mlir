// PASSES: schedule-scatters
// TARGET: gpu
//
// Rows of two caches, stored at the same run-time places: the last update of a place is found once,
// for all elements of a row and for both. The other places are numbers of loops that were stored to
// an array and loaded again before they were fused: nothing checks them.

// CHECK-LABEL: @main
// CHECK:         affine.store %{{.*}}, %[[BOARD:.*]][0, %{{.*}}, 0] : memref<1x1024x1xi64>
// CHECK:         affine.for %[[I:.*]] = 0 to 512 {
// CHECK-NOT:     affine.for
// CHECK:           %[[R:.*]] = affine.load %arg2[%[[I]]]
// CHECK:           arith.cmpi ult
// CHECK-NEXT:      cf.assert
// CHECK-NOT:       cf.assert
// CHECK:           %[[MOST:.*]] = arith.maxsi
// CHECK:           memref.store %[[MOST]], %[[BOARD]]
//
// CHECK:         affine.for %[[G:.*]] = 0 to 4 {
// CHECK-NEXT:      affine.for %[[P:.*]] = 0 to 1024 {
// CHECK-NEXT:        affine.for %[[D:.*]] = 0 to 128 {
// CHECK:               %[[N:.*]] = affine.load %[[BOARD]][0, %[[P]], 0]
// CHECK:               %[[MET:.*]] = arith.cmpi ne, %[[N]]
// CHECK:               %[[U:.*]] = memref.load %arg0
// CHECK:               %[[OLD:.*]] = affine.load %arg3[%[[G]], %[[P]], %[[D]]]
// CHECK:               %[[X:.*]] = arith.select %[[MET]], %[[U]], %[[OLD]]
// CHECK:               affine.store %[[X]], %arg3[%[[G]], %[[P]], %[[D]]]
//
// CHECK-NOT:     memref<{{.*}}xi64>
// CHECK:         affine.load %[[BOARD]][0
// CHECK:         memref.load %arg1
// CHECK:         affine.store %{{.*}}, %arg4
// CHECK-NOT:     affine.for
func.func @main(%keys: memref<512x512xf16>, %values: memref<4x512x128xf16>, %rows: memref<512xi64>,
                %cache: memref<4x1024x128xf16>, %other: memref<4x1024x128xf16>) {
  affine.for %g = 0 to 4 {
    affine.for %i = 0 to 512 {
      affine.for %d = 0 to 128 {
        %u = affine.load %keys[%i, %g * 128 + %d] : memref<512x512xf16>
        %gw = arith.index_cast %g : index to i64
        %gi = arith.index_cast %gw : i64 to index
        %c4 = arith.constant 4 : index
        %gok = arith.cmpi ult, %gi, %c4 : index
        cf.assert %gok, "index out of range"
        %r = affine.load %rows[%i] : memref<512xi64>
        %ri = arith.index_cast %r : i64 to index
        %c1024 = arith.constant 1024 : index
        %rok = arith.cmpi ult, %ri, %c1024 : index
        cf.assert %rok, "index out of range"
        %dw = arith.index_cast %d : index to i64
        %di = arith.index_cast %dw : i64 to index
        %c128 = arith.constant 128 : index
        %dok = arith.cmpi ult, %di, %c128 : index
        cf.assert %dok, "index out of range"
        memref.store %u, %cache[%gi, %ri, %di] : memref<4x1024x128xf16>
      }
    }
  }
  affine.for %g = 0 to 4 {
    affine.for %i = 0 to 512 {
      affine.for %d = 0 to 128 {
        %u = affine.load %values[%g, %i, %d] : memref<4x512x128xf16>
        %r = affine.load %rows[%i] : memref<512xi64>
        %ri = arith.index_cast %r : i64 to index
        %c1024 = arith.constant 1024 : index
        %rok = arith.cmpi ult, %ri, %c1024 : index
        cf.assert %rok, "index out of range"
        memref.store %u, %other[%g, %ri, %d] : memref<4x1024x128xf16>
      }
    }
  }
  func.return
}
