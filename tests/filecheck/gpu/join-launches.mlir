// PASSES: join-launches
//
// Two contractions that read one array, and store to parts of the workspace apart; a third one reads
// what the first one stores; the last one has other blocks, by a matrix unit.

// CHECK:       polyblocks.launches = [
// CHECK-SAME:    {arguments = [{argument = 0 : i64}, {workspace = 0 : i64}, {workspace = 64 : i64}], block = [4, 1, 1], grid = [5, 1, 1], kernel = "q_joined_1"}
// CHECK-SAME:    {arguments = [{workspace = 0 : i64}, {argument = 1 : i64}], block = [4, 1, 1], grid = [1, 1, 1], kernel = "scores"}
// CHECK-SAME:    kernel = "wide"
// CHECK-NOT:   gpu.func @q(
// CHECK-NOT:   gpu.func @k(
// CHECK:       gpu.func @q_joined_1(%[[X:.*]]: memref<4xf32> {llvm.readonly}, %[[Q:.*]]: memref<8xf32>, %[[K:.*]]: memref<16xf32>) workgroup(%[[S:.*]] : memref<4xf32{{.*}}>)
// CHECK-SAME:    known_grid_size = array<i32: 5, 1, 1>
// CHECK-SAME:    polyblocks.nests = ["q and k"]
// CHECK-SAME:    polyblocks.sources = ["a x.py:1", "b x.py:2"]
// CHECK:         %[[B:.*]] = gpu.block_id x
// CHECK:         %[[IS:.*]] = arith.cmpi ult, %[[B]], %c2
// CHECK:         scf.if %[[IS]] {
// CHECK:           memref.load %[[X]][%[[B]]]
// CHECK:           memref.store %{{.*}}, %[[S]]
// CHECK:           gpu.barrier
// CHECK:           memref.store %{{.*}}, %[[Q]][%[[B]]]
// CHECK:         } else {
// CHECK:           %[[OWN:.*]] = arith.subi %[[B]], %c2
// CHECK:           memref.load %[[X]][%[[OWN]]]
// CHECK:           memref.store %{{.*}}, %[[K]][%[[OWN]]]
// CHECK:         }
// CHECK:         gpu.return
module attributes {gpu.container_module, polyblocks.launches = [
    {arguments = [{argument = 0 : i64}, {workspace = 0 : i64}], block = [4, 1, 1], grid = [2, 1, 1], kernel = "q"},
    {arguments = [{workspace = 0 : i64}, {argument = 1 : i64}], block = [4, 1, 1], grid = [1, 1, 1], kernel = "scores"},
    {arguments = [{argument = 0 : i64}, {workspace = 64 : i64}], block = [4, 1, 1], grid = [3, 1, 1], kernel = "k"},
    {arguments = [{argument = 0 : i64}, {workspace = 128 : i64}], block = [8, 1, 1], grid = [3, 1, 1], kernel = "wide"}]} {
  gpu.module @kernels {
    gpu.func @q(%x: memref<4xf32> {llvm.readonly}, %y: memref<8xf32>) workgroup(%s: memref<4xf32, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 4, 1, 1>, known_grid_size = array<i32: 2, 1, 1>, polyblocks.kind = "contraction", polyblocks.resident = 1 : i32, polyblocks.sources = ["a x.py:1"]} {
      %b = gpu.block_id x
      %v = memref.load %x[%b] : memref<4xf32>
      memref.store %v, %s[%b] : memref<4xf32, #gpu.address_space<workgroup>>
      gpu.barrier
      memref.store %v, %y[%b] : memref<8xf32>
      gpu.return
    }
    gpu.func @scores(%y: memref<8xf32> {llvm.readonly}, %z: memref<4xf32>) workgroup(%s: memref<4xf32, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 4, 1, 1>, known_grid_size = array<i32: 1, 1, 1>, polyblocks.kind = "contraction", polyblocks.resident = 1 : i32, polyblocks.sources = ["c x.py:3"]} {
      %t = gpu.thread_id x
      %v = memref.load %y[%t] : memref<8xf32>
      memref.store %v, %z[%t] : memref<4xf32>
      gpu.return
    }
    gpu.func @k(%x: memref<4xf32> {llvm.readonly}, %y: memref<16xf32>) workgroup(%s: memref<4xf32, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 4, 1, 1>, known_grid_size = array<i32: 3, 1, 1>, polyblocks.kind = "contraction", polyblocks.resident = 1 : i32, polyblocks.sources = ["b x.py:2"]} {
      %b = gpu.block_id x
      %v = memref.load %x[%b] : memref<4xf32>
      memref.store %v, %y[%b] : memref<16xf32>
      gpu.return
    }
    gpu.func @wide(%x: memref<4xf32> {llvm.readonly}, %y: memref<16xf32>) workgroup(%s: memref<4xf32, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 8, 1, 1>, known_grid_size = array<i32: 3, 1, 1>, polyblocks.kind = "contraction", polyblocks.unit = "u", polyblocks.resident = 1 : i32, polyblocks.sources = ["d x.py:4"]} {
      %b = gpu.block_id x
      %v = memref.load %x[%b] : memref<4xf32>
      memref.store %v, %y[%b] : memref<16xf32>
      gpu.return
    }
  }
}
